//! Weights by name: what a library makes of a checkpoint is, bit for bit, what the build wrote; what does not fit is named;
//! and runs go on while weights change.

use aoti_compiler::frontend;
use aoti_compiler::graph::{Constant, ConstantSource};
use aoti_runtime::{
    DType, DynTensor, Error, ErrorCode, Executor, Inline, Library, LoadOptions, Model, PrepareOptions,
    ThreadPool, Weights, Workspace,
};
use aoti_tests::models;
use aoti_tests::native::{numbers, run_alone};
use aoti_tests::project::Project;
use aoti_tests::subcommand::workspace;
use aoti_tests::tools::are_there;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tensors of a program's state by name, as a checkpoint has them.
type Checkpoint = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// A model built twice: with its weights inside, and to be given them.
struct Built {
    embedded: Model,
    named: Library,
    /// The weights as the build wrote them.
    blob: Vec<u8>,
    checkpoint: Checkpoint,
    folder: tempfile::TempDir,
}

impl Built {
    fn new(path: &Path) -> Built {
        let name = if path.extension().is_some_and(|own| own == "aoti") { "model.aoti" } else { "model.pt2" };
        let project = Project::new(&format!(
            "[package.metadata.aoti.models.inside]\npath = \"models/{name}\"\nlink = \"dylib\"\n\
             [package.metadata.aoti.models.outside]\npath = \"models/{name}\"\nlink = \"dylib\"\nweights = \"external\"\n",
        ));
        let project = project.with_model(name, path);
        project.build();
        let library = |name: &str| {
            Library::open(project.library(name), &project.symbol(name)).expect("the library can be opened")
        };
        let embedded = library("inside").load(LoadOptions::default()).expect("it has weights");
        Built {
            embedded,
            named: library("outside"),
            blob: fs::read(project.artefacts("outside").join("outside.weights.bin")).expect("it was written"),
            checkpoint: checkpoint(path),
            folder: tempfile::tempdir().expect("there is room for a folder"),
        }
    }

    fn file(&self, checkpoint: &Checkpoint) -> PathBuf {
        file_in(self.folder.path(), checkpoint)
    }
    /// Loads the weights from a safetensors file of these tensors.
    fn weights(&self, checkpoint: &Checkpoint) -> Result<Weights, Error> {
        Weights::from_safetensors(self.file(checkpoint), &self.named.info()?)
    }

    fn model(&self, checkpoint: &Checkpoint) -> Result<Model, Error> {
        self.named.load(LoadOptions { weights: self.weights(checkpoint)?, ..LoadOptions::default() })
    }

    /// What is wrong with a checkpoint, as the library says it.
    fn refusal(&self, change: impl FnOnce(&mut Checkpoint)) -> String {
        let mut checkpoint = self.checkpoint.clone();
        change(&mut checkpoint);
        let error = self.weights(&checkpoint).expect_err("it does not fit");
        assert_eq!(error.code(), ErrorCode::Weights);
        error.message().to_owned()
    }
}

/// A safetensors file of these tensors.
fn file_in(folder: &Path, checkpoint: &Checkpoint) -> PathBuf {
    let path = folder.join("checkpoint.safetensors");
    fn view<'a>(
        (name, (dtype, sizes, bytes)): (&'a String, &'a (Dtype, Vec<usize>, Vec<u8>)),
    ) -> (&'a str, TensorView<'a>) {
        (name, TensorView::new(*dtype, sizes.clone(), bytes).expect("the bytes fit"))
    }
    safetensors::serialize_to_file(checkpoint.iter().map(view), None, &path).expect("it can be written");
    path
}

fn checkpoint(path: &Path) -> Checkpoint {
    let model = fs::read(path).expect("the model can be read");
    // An exported program is asked itself, before decomposition drops anything.
    let constants: Vec<Constant> = if frontend::text::is_text(&model) {
        let graph = frontend::text::import("model", model.into()).expect("it can be imported");
        graph.constants.values().cloned().collect()
    } else {
        let program = frontend::import("model", model.into()).expect("it can be imported");
        program.constants.into_values().collect()
    };
    constants
        .into_iter()
        .filter(|own| own.source == ConstantSource::Weight)
        .map(|Constant { name, dtype, sizes, data, .. }| {
            let dtype =
                serde_json::from_str(&format!("\"{}\"", dtype.name().to_uppercase())).expect("it has one");
            (name, (dtype, sizes.into_iter().map(|size| size as usize).collect(), data.to_vec()))
        })
        .collect()
}

/// Runs a case's inputs.
fn outputs(model: &Model, inputs: &[DynTensor]) -> Result<Vec<DynTensor>, Error> {
    let views: Vec<_> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut state = (model.info().state_bytes > 0).then(|| model.state()).transpose()?;
    let mut places: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model.run(&views, &mut places, state.as_mut(), &mut Workspace::new(), &Inline)?;
    Ok(outputs)
}

/// Types of inputs in files.
const TYPES: [(Dtype, DType); 4] = [
    (Dtype::I64, DType::I64),
    (Dtype::I32, DType::I32),
    (Dtype::BOOL, DType::Bool),
    (Dtype::F32, DType::F32),
];

fn inputs(case: &Path) -> Vec<DynTensor> {
    let bytes = fs::read(case.join("inputs.safetensors")).expect("the case has inputs");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("they can be read");
    let tensor = |number: usize| {
        let view = file.tensor(&number.to_string()).expect("inputs are numbered");
        let (_, dtype) =
            TYPES.iter().find(|(file, _)| *file == view.dtype()).expect("no case has inputs of other types");
        DynTensor::from_bytes(*dtype, view.shape(), view.data()).expect("the data fit")
    };
    (0..file.len()).map(tensor).collect()
}

#[test]
fn a_checkpoint_gives_the_bits_that_the_build_wrote() {
    let built = Built::new(&models::digits());
    let model = built.model(&built.checkpoint).unwrap();
    assert!(model.weights().as_bytes().unwrap() == built.blob, "the weights differ");
    let input = numbers(&[5, 1, 8, 8], 1);
    let (found, expected) = (run_alone(&model, &input).unwrap(), run_alone(&built.embedded, &input).unwrap());
    assert_eq!(found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
    let by_pool = PrepareOptions { executor: Some(&ThreadPool::new(3)), progress: None };
    let path = built.file(&built.checkpoint);
    let info = built.named.info().unwrap();
    let weights = Weights::from_safetensors_files([path], &info, by_pool).unwrap();
    assert!(weights.as_bytes().unwrap() == built.blob, "threads make a difference");
}

/// A program over constants, whose elements follow from `seed`: a product of 32 columns, whose packed form has as many bytes
/// as its plain one; a convolution with a scale and a shift for each channel, which are folded into its weight; and what
/// is computed from weights alone, in types of several widths.
fn network(seed: u32) -> String {
    format!(
        "graph {{
         const c0 \"linear.weight\": f32[32, 24] weight = random {seed}
         const c1 \"conv.weight\": f32[6, 2, 3, 3] weight = random {}
         const c2 \"norm.scale\": f32[6, 1, 1] weight = random {}
         const c3 \"norm.shift\": f32[6, 1, 1] weight = random {}
         const c4 \"half\": f16[24, 24] weight = random {}
         const c5 \"bias\": f32[32] weight = random {}
         input %x: f32[1, 2, 6, 4]
         %w1: f32[6, 2, 3, 3] = constant c1
         %y: f32[1, 6, 4, 2] = conv %x, %w1 stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
         %s0: f32[6, 1, 1] = constant c2
         %s: f32[1, 6, 4, 2] = view %s0 [i1, 0, 0]
         %t0: f32[6, 1, 1] = constant c3
         %t: f32[1, 6, 4, 2] = view %t0 [i1, 0, 0]
         %scaled: f32[1, 6, 4, 2] = mul %y, %s
         %shifted: f32[1, 6, 4, 2] = add %scaled, %t
         %rows: f32[2, 24] = view %shifted [0, i1 // 4, i1 % 4, i0]
         %h: f16[24, 24] = constant c4
         %wide: f32[24, 24] = cast %h
         %e: f32[24, 24] = exp %wide
         %w0: f32[32, 24] = constant c0
         %plain: f32[24, 32] = view %w0 [i1, i0]
         %sum: f32[24] = sum %e axes [1]
         %factor: f32[2, 24] = view %sum [i1]
         %weighted: f32[2, 24] = mul %rows, %factor
         %p: f32[2, 32] = matmul %weighted, %plain
         %b: f32[32] = constant c5
         %bias: f32[2, 32] = view %b [i1]
         %z: f32[2, 32] = add %p, %bias
         output %z }}",
        seed + 1,
        seed + 2,
        seed + 3,
        seed + 4,
        seed + 5
    )
}

#[test]
fn other_weights_give_what_a_build_with_them_gives() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 50].map(|seed| {
        let path = folder.path().join(format!("{seed}.aoti"));
        fs::write(&path, network(seed)).unwrap();
        Built::new(&path)
    });
    assert_ne!(one.blob, two.blob);
    let weights = one.weights(&two.checkpoint).unwrap();
    assert!(weights.as_bytes().unwrap() == two.blob, "the weights differ");
    let input = numbers(&[1, 2, 6, 4], 1);
    let found = run_alone(&one.model(&two.checkpoint).unwrap(), &input).unwrap();
    let expected = run_alone(&two.embedded, &input).unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
}

/// The zoo and whatever else `AOTI_CHECKPOINTS` names: folders with a model, inputs, and perhaps `state.safetensors` as
/// PyTorch wrote it.
#[test]
fn checkpoints_of_real_models_give_the_bits_that_the_build_wrote() {
    let folders = ["AOTI_CONFORMANCE", "AOTI_CHECKPOINTS"].map(std::env::var_os);
    let [zoo, more] = folders.map(|folder| folder.map(PathBuf::from));
    let lists = zoo.map(|folder| folder.join("zoo")).into_iter().chain(more);
    let cases: Vec<PathBuf> = lists
        .flat_map(|folder| fs::read_dir(folder).expect("it can be listed"))
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.join("model.pt2").is_file())
        .collect();
    if cases.is_empty() {
        eprintln!("skipped: AOTI_CONFORMANCE does not name a folder of cases");
    }
    for case in cases {
        let name = case.file_name().expect("a case has a name").to_string_lossy().into_owned();
        let built = Built::new(&case.join("model.pt2"));
        let state = case.join("state.safetensors");
        let file = if state.is_file() { state } else { built.file(&built.checkpoint) };
        let weights = Weights::from_safetensors(&file, &built.named.info().unwrap());
        let weights = weights.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(weights.as_bytes().unwrap() == built.blob, "{name}: the weights differ");
        let model = built.named.load(LoadOptions { weights, ..LoadOptions::default() }).unwrap();
        let inputs = inputs(&case);
        let (found, expected) =
            (outputs(&model, &inputs).unwrap(), outputs(&built.embedded, &inputs).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.bytes() == expected.bytes(), "{name}: results differ");
        }
        eprintln!("{name}: {} tensors, {} bytes agree", built.checkpoint.len(), built.blob.len());
    }
}

/// Every kind of device reads constants in forms of its own, which lie one behind the other.
#[test]
fn libraries_for_gpus_get_the_weights_of_every_device() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    if !are_there("nvcc", &[&nvcc]) {
        return;
    }
    let path = models::digits();
    let checkpoint = checkpoint(&path);
    let mut lengths = Vec::new();
    let cuda = "\ncuda = [\"sm_90a\"]";
    for (devices, cuda) in [("\"cpu\"", ""), ("\"cuda\"", cuda), ("\"cpu\", \"cuda\"", cuda)] {
        let project = Project::new(&format!(
            "[package.metadata.aoti]\ndevices = [{devices}]{cuda}\n\
             [package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n\
             weights = \"external\"\n"
        ));
        let project = project.with_model("digits.pt2", &path);
        project.build();
        let blob = fs::read(project.artefacts("digits").join("digits.weights.bin")).expect("it was written");
        let library = Library::open(project.library("digits"), &project.symbol("digits")).expect("it is one");
        let file = file_in(project.folder(), &checkpoint);
        let info = library.info().expect("it tells of itself");
        let weights = Weights::from_safetensors(file, &info).expect("they fit");
        assert!(weights.as_bytes() == Some(blob.as_slice()), "{devices}");
        lengths.push(blob.len());
    }
    assert_eq!(lengths[0] + lengths[1], lengths[2]);
}

#[test]
fn what_does_not_fit_is_named_all_at_once() {
    let built = Built::new(&models::digits());
    let names: Vec<String> = built.checkpoint.keys().cloned().collect();
    let (first, last) = (&names[0], &names[names.len() - 1]);
    assert_eq!(built.refusal(|all| drop(all.remove(first))), format!("weight `{first}` is missing"));
    let message = built.refusal(|all| {
        let (dtype, sizes, bytes) = all.remove(first).unwrap();
        all.insert("other".to_owned(), (dtype, sizes, bytes));
        let (_, sizes, bytes) = all[last].clone();
        all.insert(last.clone(), (Dtype::I32, sizes, bytes));
    });
    for part in ["3 things", "`other` is not a weight of the model", &format!("weight `{first}` is missing")]
    {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
    assert!(message.contains(&format!("weight `{last}` is i32 of ")), "{message}");
    let matrix = built.checkpoint.iter().find(|(_, (_, sizes, _))| sizes.len() == 2).unwrap().0;
    let message = built.refusal(|all| all.get_mut(matrix).unwrap().1.reverse());
    assert!(message.starts_with(&format!("weight `{matrix}` is f32 of [")), "{message}");
    assert!(message.contains(", must be f32 of ["), "{message}");
    let path = built.file(&built.checkpoint);
    let bytes = fs::read(&path).unwrap();
    for length in [0, 7, 100, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(Weights::from_safetensors(&path, &built.named.info().unwrap()).is_err(), "{length} bytes");
    }
}

#[test]
fn weights_that_are_not_numbers_give_results_that_are_none() {
    let built = Built::new(&models::digits());
    let mut checkpoint = built.checkpoint.clone();
    for (dtype, _, bytes) in checkpoint.values_mut().filter(|(dtype, ..)| *dtype == Dtype::F32) {
        assert_eq!(*dtype, Dtype::F32);
        bytes.chunks_exact_mut(4).for_each(|element| element.copy_from_slice(&f32::NAN.to_le_bytes()));
    }
    let output = run_alone(&built.model(&checkpoint).unwrap(), &numbers(&[2, 1, 8, 8], 3)).unwrap();
    assert!(output.as_slice::<f32>().unwrap().iter().all(|number| number.is_nan()), "{output:?}");
}

#[test]
fn every_run_sees_one_whole_set_while_weights_change() {
    const CHANGES: usize = 1000;
    let built = Built::new(&models::digits());
    let mut other = built.checkpoint.clone();
    for (_, _, bytes) in other.values_mut().filter(|(dtype, ..)| *dtype == Dtype::F32) {
        for element in bytes.chunks_exact_mut(4) {
            let value = f32::from_le_bytes(element.try_into().unwrap()) * 0.75 + 0.01;
            element.copy_from_slice(&value.to_le_bytes());
        }
    }
    let sets = [built.weights(&built.checkpoint).unwrap(), built.weights(&other).unwrap()];
    let load = |weights: &Weights| {
        built.named.load(LoadOptions { weights: weights.clone(), ..LoadOptions::default() }).unwrap()
    };
    let input = numbers(&[3, 1, 8, 8], 7);
    let bits = |output: &DynTensor| output.bytes().to_vec();
    let expected = sets.each_ref().map(|weights| bits(&run_alone(&load(weights), &input).unwrap()));
    assert_ne!(expected[0], expected[1]);
    let (model, done) = (load(&sets[0]), AtomicBool::new(false));
    let counts = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (mut workspace, mut counts) = (Workspace::new(), [0usize; 2]);
                    let mut output = DynTensor::empty(DType::F32);
                    while !done.load(Ordering::Relaxed) {
                        model
                            .run(&[input.view()], &mut [&mut output], None, &mut workspace, &Inline)
                            .unwrap();
                        let found = expected.iter().position(|set| *set == bits(&output));
                        counts[found.expect("a result belongs to one of the sets")] += 1;
                    }
                    counts
                })
            })
            .collect();
        for change in 0..CHANGES {
            // Made anew each time, so that sets which no run needs go while others run.
            let weights = Weights::bytes(sets[(change + 1) % 2].as_bytes().unwrap()).unwrap();
            model.update_weights(weights).unwrap();
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    let seen: usize = counts.iter().flatten().sum();
    eprintln!("{seen} runs during {CHANGES} changes");
    assert!(seen > 0);
}

/// A library with weights of its own takes others where the manifest says so, and only there.
#[test]
fn embedded_weights_can_be_replaced_where_the_manifest_says_so() {
    let table = "[package.metadata.aoti.models.scaled]\npath = \"models/scaled.aoti\"\nlink = \"dylib\"\n";
    let load = |table: &str| {
        let project = Project::new(table);
        project.write("models/scaled.aoti", models::SCALED);
        project.build();
        Library::open(project.library("scaled"), &project.symbol("scaled")).unwrap()
    };
    let named = load(&format!("{table}named-weights = true\n"));
    let info = named.info().unwrap();
    let bytes: Vec<u8> = [5f32, 6.0, 7.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = aoti_runtime::NamedTensor { dtype: DType::F32, sizes: &[3], bytes: &bytes };
    let model = named.load(LoadOptions::default()).unwrap();
    let input = DynTensor::from_bytes(DType::F32, &[1, 3], &[0, 0, 128, 63].repeat(3)).unwrap();
    assert_eq!(run_alone(&model, &input).unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    model.update_weights(Weights::from_named(&info, [("weight", tensor)]).unwrap()).unwrap();
    assert_eq!(run_alone(&model, &input).unwrap().as_slice::<f32>().unwrap(), [5.0, 6.0, 7.0]);
    let error = Weights::from_named(&load(table).info().unwrap(), [("weight", tensor)]).unwrap_err();
    assert!(error.message().contains("named-weights = true"), "{error}");
}

/// The same from C: a program that prepares weights, runs, and prints what it is told.
#[test]
fn c_programs_prepare_weights_by_name() {
    let table =
        "[package.metadata.aoti.models.scaled]\npath = \"models/scaled.aoti\"\nweights = \"external\"\n";
    let project = Project::new(table);
    project.write("models/scaled.aoti", models::SCALED);
    project.build();
    let folder = project.artefacts("scaled");
    let program = folder.join("program");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(workspace().join("build-support/aoti-compiler/include"))
        .arg("-I")
        .arg(&folder)
        .arg(workspace().join("tests/programs/prepare.c"))
        .arg(project.library("scaled"))
        .args(["-lm", "-o"])
        .arg(&program)
        .status()
        .expect("the tests need a C compiler named `cc`");
    assert!(status.success());
    let output = Command::new(program).output().unwrap();
    let expected = "`other` is not a weight of the model\nweight `weight` is missing\n\
                    refused: `other` is not a weight of the model (and 1 more)\n\
                    12 of 12 bytes\n5 12 21\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(output.status.success());
}

/// A pool may be shared between preparing and running.
#[test]
fn preparing_uses_the_threads_it_is_given() {
    let built = Built::new(&models::digits());
    let pool = ThreadPool::new(2);
    let executor: &dyn Executor = &pool;
    let mut last = (0, 0);
    let mut progress = |done, total| last = (done, total);
    let options = PrepareOptions { executor: Some(executor), progress: Some(&mut progress) };
    let info = built.named.info().unwrap();
    Weights::from_safetensors_files([built.file(&built.checkpoint)], &info, options).unwrap();
    assert!(last.0 == last.1 && last.0 > 0, "{last:?}");
}
