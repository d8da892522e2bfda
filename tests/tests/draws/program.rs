//! Programs that draw, and what they draw.

use aoti_compiler::frontend::torch::aten::text::parse;
use aoti_compiler::frontend::torch::functionalize::functionalize;
use aoti_compiler::graph::{Graph, InputRole, text};
use aoti_compiler::interpret::evaluate;
use aoti_runtime::{AnyView, DType, DynTensor, Generator, Inline, Model, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::families;
use bytes::Bytes;
use std::time::{Duration, Instant};

/// How many numbers `AOTI_DRAWS` asks for.
fn asked() -> Option<usize> {
    std::env::var("AOTI_DRAWS").ok().and_then(|value| value.parse().ok())
}

/// How many numbers of each distribution are drawn.
pub(crate) fn count() -> usize {
    asked().unwrap_or(20_000)
}

/// As many operands of one number as numbers are drawn.
pub(crate) fn filled(dtype: DType, value: f64) -> DynTensor {
    rows(dtype, &[value])
}

/// A row of numbers for each draw; a row of one has no axis of its own.
pub(crate) fn rows(dtype: DType, row: &[f64]) -> DynTensor {
    let sizes = if row.len() == 1 { vec![count()] } else { vec![count(), row.len()] };
    of(dtype, &sizes, &row.repeat(count()))
}

/// A tensor of `f32` or `f64`.
pub(crate) fn of(dtype: DType, sizes: &[usize], numbers: &[f64]) -> DynTensor {
    let bytes: Vec<u8> = if dtype == DType::F32 {
        numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect()
    } else {
        assert_eq!(dtype, DType::F64, "operands are of `f32` or `f64`");
        numbers.iter().flat_map(|x| x.to_ne_bytes()).collect()
    };
    DynTensor::from_bytes(dtype, sizes, &bytes).expect("as many as were given")
}

/// A program, ready to run.
pub(crate) struct Program {
    text: String,
    code: Code,
}

enum Code {
    Evaluated(Graph),
    /// With the folder of its library.
    Compiled(Model, #[expect(dead_code, reason = "it is removed when it is dropped")] tempfile::TempDir),
}

impl Program {
    /// Statements in the text form of ATen calls, where `N` is how many numbers are drawn; the result is `%y`.
    pub(crate) fn new(statements: &str) -> Program {
        let text = format!("program {{ {} output %y }}", statements.replace('N', &count().to_string()));
        let graph = functionalize(&parse(&text).expect("the text parses")).expect("it is supported");
        assert_eq!(graph.inputs.last().map(|input| input.role), Some(InputRole::Generator));
        let compiler = if asked().is_some() { batch::compiler() } else { None };
        let code = match compiler {
            None => Code::Evaluated(graph),
            Some(compiler) => {
                let folder = tempfile::tempdir().expect("a folder for the library");
                let models = [Bytes::from(text::print(&graph))];
                let built = batch::build(&compiler, &models, Processors::ThisOne, folder.path());
                Code::Compiled(built.expect("it compiles").remove(0), folder)
            }
        };
        Program { text: statements.split_whitespace().collect::<Vec<_>>().join(" "), code }
    }

    /// What it gives with a seed and an offset.
    pub(crate) fn drawn(&self, inputs: &[DynTensor], seed: i64, offset: i64) -> Vec<f64> {
        self.timed(inputs, seed, offset).0
    }

    /// The same, and how long it takes.
    fn timed(&self, inputs: &[DynTensor], seed: i64, offset: i64) -> (Vec<f64>, Duration) {
        let start = Instant::now();
        let output = match &self.code {
            Code::Evaluated(graph) => {
                let generator = aoti_compiler::interpret::Tensor::from_i64(&[2], &[seed, offset]);
                let mut inputs: Vec<_> = inputs.iter().map(families::to_interpreter).collect();
                inputs.push(generator);
                families::from_interpreter(&evaluate(graph, &inputs).expect("it runs")[0])
            }
            Code::Compiled(model, _) => {
                let mut output = DynTensor::empty(model.info().outputs[0].dtype);
                let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
                let mut workspace = Workspace::new();
                workspace.set_generator(Generator { seed: seed as u64, offset: offset as u64 });
                model.run(&views, &mut [&mut output], None, &mut workspace, &Inline).expect("it runs");
                output
            }
        };
        let time = start.elapsed();
        (families::to_interpreter(&output).to_f64(), time)
    }
}

/// What the statements draw with a seed, and how they are told of.
pub(crate) fn drawn(statements: &str, inputs: &[DynTensor], seed: i64) -> Drawn {
    let program = Program::new(statements);
    let (numbers, time) = program.timed(inputs, seed, 0);
    Drawn { numbers, what: format!("{} ({:.2} s)", program.text, time.as_secs_f64()) }
}

/// Numbers, and what drew them.
pub(crate) struct Drawn {
    pub(crate) numbers: Vec<f64>,
    pub(crate) what: String,
}

impl Drawn {
    /// A function of the numbers.
    pub(crate) fn map(self, numbers: impl FnOnce(Vec<f64>) -> Vec<f64>) -> Drawn {
        Drawn { numbers: numbers(self.numbers), what: self.what }
    }
}
