//! A compiler of one model, for tests: the first four bytes of a model are its weight, the rest is its program, of which
//! `error` does not compile, and `huge` has more weights than a library holds. Others make the kernel err, each in its way.

use aoti_compiler::codegen::bundle::{Goal, SourceBundle, SourceFile, TranslationUnit, WeightsBlob};
use aoti_compiler::codegen::interface::{DimInterface, ElementType, Interface, ValueInterface};
use aoti_compiler::compile::Options;
use aoti_compiler::diagnostic::{Code, Diagnostic, Diagnostics};
use aoti_compiler::dtype::DType;
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::names;
use bytes::Bytes;

pub(crate) fn compile(model: ModelFile, options: &Options) -> Result<SourceBundle, Diagnostics> {
    let (weight, program) = model.file.split_at(4.min(model.file.len()));
    let program = String::from_utf8_lossy(program).into_owned();
    if program == "error" {
        let help = "write something else";
        return Err(Diagnostic::new(Code::Operator, "`error` is not supported").help(help).into());
    }
    let identifier = names::identifier(&options.name);
    let symbol = names::symbol(&options.name, &options.package);
    let wrapper = include_str!("fake.cpp")
        .replace(" *API()", &format!(" *aoti_{symbol}_api()"))
        .replace("EMBEDDED", &format!("aoti_{symbol}_weights"))
        .replace("KERNEL", &format!("aoti_{identifier}_kernel"))
        // A weak reference takes no member out of a static library.
        .replace("WEAK", if options.embed_weights { "" } else { "weak," })
        .replace("REFUSES", if program == "refuses" { "1" } else { "0" });
    let kernel =
        format!("void aoti_{identifier}_kernel(const float *x, float *y, long long n, float weight)");
    let end = if program == "forgets" { "n - 1" } else { "n" };
    let body = format!("for (long long i = 0; i < {end}; ++i) y[i] = x[i] + weight; {}", mistake(&program));
    let file = |name: &str, text: String| SourceFile { name: name.to_owned(), text };
    let files = vec![
        file("include/aoti/abi.h", include_str!("../../../aoti-compiler/include/aoti/abi.h").to_owned()),
        file("kernels.h", format!("#pragma once\n{kernel};\n")),
        file("kernels.cpp", format!("// {program}\n#include \"kernels.h\"\n{kernel} {{ {body} }}\n")),
        file("wrapper.cpp", wrapper),
    ];
    let unit = |source: &str, object: &str, level: Option<&String>| TranslationUnit {
        source: source.to_owned(),
        object: object.to_owned(),
        level: level.cloned(),
        defines: vec![("UNUSED".to_owned(), "1".to_owned())],
        goal: Goal::Speed,
    };
    let units = vec![
        unit("kernels.cpp", "kernels.o", options.levels.first()),
        unit("wrapper.cpp", "wrapper.o", None),
    ];
    Ok(SourceBundle {
        programs: Vec::new(),
        interface: interface(&options.name),
        identifier,
        symbol,
        library: String::new(),
        files,
        units,
        devices: Vec::new(),
        functions: Vec::new(),
        kernels: 1,
        weights: WeightsBlob {
            segments: vec![(0, Bytes::copy_from_slice(weight))],
            bytes: if program == "huge" { 2_000_000_064 } else { 64 },
        },
        fixed: WeightsBlob::default(),
    })
}

/// What the kernel does beyond its task.
fn mistake(program: &str) -> &'static str {
    match program {
        "overruns" => "y[n] = weight;",
        "underruns" => "y[0] = x[-1];",
        "overflows" => "volatile int most = 0x7fffffff; y[0] = float(most + 1);",
        "races" => "static volatile long long calls; calls = calls + 1;",
        "scribbles" => "const_cast<float *>(x)[0] = weight;",
        _ => "",
    }
}

fn interface(name: &str) -> Interface {
    let dim = |expression: Option<&str>, min, max| DimInterface {
        expression: expression.map(str::to_owned),
        min,
        max,
    };
    let value = |name: &str| ValueInterface {
        name: name.to_owned(),
        element: ElementType::Number(DType::F32),
        dims: vec![dim(Some("batch"), 1, 1_000_000), dim(None, 3, 3)],
    };
    Interface {
        name: name.to_owned(),
        inputs: vec![value("x")],
        outputs: vec![value("y")],
        states: Vec::new(),
        constants: Vec::new(),
        weights_bytes: 64,
        expanded_bytes: 0,
        state_bytes: 0,
    }
}
