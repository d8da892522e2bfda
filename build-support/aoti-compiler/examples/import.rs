//! Prints the calls of a model as the front end reads them: `cargo run --example import model.pt2`.

use aoti_compiler::frontend::torch::aten::{Arg, Output, Program};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let result = std::fs::read(&path).map_err(|error| error.to_string()).and_then(|file| {
            aoti_compiler::frontend::torch::program("model", file.into()).map_err(|e| e.to_string())
        });
        match result {
            Ok(program) => print(&program, ""),
            Err(error) => {
                failed = true;
                eprintln!("{path}: {error}");
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(program: &Program, indent: &str) {
    for (index, symbol) in program.symbols.iter().enumerate() {
        println!("{indent}symbol s{index} = {} {:?} {:?}", symbol.name, symbol.range, symbol.source);
    }
    for guard in &program.guards {
        println!("{indent}guard {}", guard.condition.display_with(&|symbol| symbol.to_string()));
    }
    for input in &program.inputs {
        println!("{indent}input {}: {} {:?}", input.name, shape(program, &input.name), input.kind);
    }
    for call in &program.calls {
        let args: Vec<String> = call.args.iter().map(|(name, arg)| format!("{name}={}", text(arg))).collect();
        let outputs: Vec<String> = call.outputs.iter().map(|output| result(program, output)).collect();
        println!("{indent}{} = {}({})", outputs.join(", "), call.target, args.join(", "));
        for (_, arg) in &call.args {
            if let Arg::Graph(body) = arg {
                println!("{indent}  graph {}", body.name);
                print(body, &format!("{indent}    "));
            }
        }
    }
    for output in &program.outputs {
        println!("{indent}output {} {:?}", text(&output.value), output.kind);
    }
}

fn shape(program: &Program, name: &str) -> String {
    program.tensors.get(name).map(|meta| format!("{}{:?}", meta.dtype, meta.sizes)).unwrap_or_default()
}

fn result(program: &Program, output: &Output) -> String {
    match output {
        Output::Tensor(name) => format!("{name}: {}", shape(program, name)),
        Output::Tensors(names) => {
            let parts: Vec<String> =
                names.iter().map(|name| format!("{name}: {}", shape(program, name))).collect();
            format!("[{}]", parts.join(", "))
        }
        Output::SymInt(name) | Output::SymBool(name) | Output::SymFloat(name) => name.clone(),
        Output::None => "none".to_owned(),
    }
}

fn text(arg: &Arg) -> String {
    match arg {
        Arg::None => "none".to_owned(),
        Arg::Tensor(name) => format!("%{name}"),
        Arg::Tensors(names) => {
            let names: Vec<String> = names
                .iter()
                .map(|name| name.as_ref().map_or("none".to_owned(), |name| format!("%{name}")))
                .collect();
            format!("[{}]", names.join(", "))
        }
        Arg::Int(value) => value.to_string(),
        Arg::Ints(values) => format!("{values:?}"),
        Arg::Float(value) => format!("{value:?}"),
        Arg::Floats(values) => format!("{values:?}"),
        Arg::Complex { re, im } => format!("{re:?} + {im:?}i"),
        Arg::Bool(value) => value.to_string(),
        Arg::Bools(values) => format!("{values:?}"),
        Arg::SymBool(name) | Arg::SymFloat(name) => format!("%{name}"),
        Arg::Condition(condition) => condition.display_with(&|symbol| symbol.to_string()),
        Arg::Str(text) => format!("{text:?}"),
        Arg::DType(dtype) => dtype.to_string(),
        Arg::Other(text) => text.clone(),
        Arg::Graph(program) => format!("@{}", program.name),
    }
}
