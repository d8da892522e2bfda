//! Writes what runs cases on a GPU to folders: `device ARCHITECTURE OUT CASE...`.

use aoti_compiler::compile::{Options, device};
use aoti_compiler::dtype::DType;
use aoti_compiler::graph::SymbolSource;
use aoti_compiler::symbolic::{Expr, Symbol, SymbolKind};
use aoti_compiler::target::GpuTarget;
use aoti_compiler::transform::rename::Names;
use std::fmt::Write;
use std::fs;
use std::path::Path;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [architecture, out, cases @ ..] = arguments.as_slice() else {
        return Err("device ARCHITECTURE OUT CASE...".into());
    };
    let target = GpuTarget::named(architecture).ok_or("the architecture is not known")?;
    for case in cases {
        let case = Path::new(case);
        let name = case.file_name().and_then(|name| name.to_str()).ok_or("a case has a name")?;
        let result = std::panic::catch_unwind(|| write_case(case, &Path::new(out).join(name), &target));
        match result {
            Ok(Ok(())) => println!("{name}"),
            Ok(Err(error)) => eprintln!("{name}: {error}"),
            Err(_) => eprintln!("{name}: panic"),
        }
    }
    Ok(())
}

struct Tensors(Vec<(Vec<usize>, Vec<u8>)>);

fn read(path: &Path) -> Result<Tensors, Failure> {
    let bytes = fs::read(path)?;
    let file = safetensors::SafeTensors::deserialize(&bytes)?;
    let tensors = (0..file.len()).map(|k| {
        let view = file.tensor(&k.to_string())?;
        Ok((view.shape().to_vec(), view.data().to_vec()))
    });
    Ok(Tensors(tensors.collect::<Result<_, Failure>>()?))
}

fn write_case(case: &Path, out: &Path, target: &GpuTarget) -> Result<(), Failure> {
    let options = Options {
        name: "model".to_owned(),
        package: String::new(),
        names: Names::default(),
        levels: vec![],
        embed_weights: true,
        named_weights: false,
    };
    let (program, code) = device(bytes::Bytes::from(fs::read(case.join("model.pt2"))?), &options, target)?;
    let (inputs, expected) =
        (read(&case.join("inputs.safetensors"))?, read(&case.join("outputs.safetensors"))?);
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(case.join("case.json")).unwrap_or_default())
            .unwrap_or_default();
    let number =
        |key: &str, default: f64| json.get(key).and_then(serde_json::Value::as_f64).unwrap_or(default);
    let position = |input: usize| program.inputs.iter().position(|own| *own == program.graph_inputs[input]);
    let symbols: Vec<i64> = program
        .symbols
        .iter()
        .map(|symbol| match symbol.source {
            SymbolSource::InputDim { input, axis } => {
                position(input).map_or(0, |p| inputs.0[p].0[axis] as i64)
            }
            SymbolSource::InputValue { input } => position(input)
                .map_or(0, |p| i64::from_le_bytes(inputs.0[p].1[..8].try_into().unwrap_or_default())),
            SymbolSource::Data => symbol.range.max,
        })
        .collect();
    let value = |symbol: Symbol| (symbol.kind == SymbolKind::Size).then(|| symbols[symbol.index as usize]);
    let bytes_of = |id| {
        let buffer = &program.buffers[id];
        let count = Expr::product(&buffer.shape).evaluate(&value).unwrap_or(0);
        count * buffer.dtype.size() as i64
    };
    let dtype = |dtype: DType| dtype as u8;
    let mut text = format!("{} {}\n{}", number("atol", 1e-4), number("rtol", 1e-3), symbols.len());
    symbols.iter().for_each(|symbol| text.push_str(&format!(" {symbol}")));
    let _ = writeln!(text, "\n{}", program.inputs.len());
    let (mut in_bytes, mut out_bytes) = (Vec::new(), Vec::new());
    for (k, id) in program.inputs.iter().enumerate() {
        let _ = writeln!(text, "{} {}", dtype(program.buffers[*id].dtype), inputs.0[k].1.len());
        in_bytes.extend_from_slice(&inputs.0[k].1);
    }
    let _ = writeln!(text, "{}", program.outputs.len());
    for (k, id) in program.outputs.iter().enumerate() {
        let given = &expected.0[k].1;
        let _ = writeln!(text, "{} {} {}", dtype(program.buffers[*id].dtype), bytes_of(*id), given.len());
        out_bytes.extend_from_slice(given);
    }
    let _ = writeln!(text, "{}", program.states.len());
    for (k, (id, _)) in program.states.iter().enumerate() {
        let _ = writeln!(text, "{} {}", bytes_of(*id), code.plan.states[k].value);
    }
    let _ = writeln!(text, "{}", code.kernels.len());
    for kernel in &code.kernels {
        let _ = writeln!(text, "{} {}", kernel.name, kernel.shared);
    }
    let _ = writeln!(text, "{}", code.weights.bytes);
    fs::create_dir_all(out)?;
    let mut weights = vec![0u8; usize::try_from(code.weights.bytes)?];
    for (offset, data) in &code.weights.segments {
        let start = usize::try_from(*offset)?;
        weights[start..start + data.len()].copy_from_slice(data);
    }
    fs::write(out.join("case.txt"), text)?;
    fs::write(out.join("device.cu"), &code.device)?;
    fs::write(out.join("run.cpp"), &code.host)?;
    fs::write(out.join("weights.bin"), weights)?;
    fs::write(out.join("inputs.bin"), in_bytes)?;
    fs::write(out.join("expected.bin"), out_bytes)?;
    Ok(())
}
