//! Writes the source bundle of a model to a folder: `bundle MODEL OUT [LEVEL|ARCHITECTURE...]`.

use aoti_compiler::compile::{Emit, Options, compile, emit};
use aoti_compiler::target::GpuTarget;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, out, levels @ ..] = arguments.as_slice() else {
        return Err("bundle MODEL OUT [LEVEL|ARCHITECTURE...]".into());
    };
    let levels = if levels.is_empty() { vec!["native".to_owned()] } else { levels.to_vec() };
    let is_gpu = |name: &String| GpuTarget::named(name).is_some();
    let (gpus, levels): (Vec<String>, Vec<String>) = levels.into_iter().partition(is_gpu);
    let options = Options::new("model", levels).with_gpus(gpus);
    let bytes = bytes::Bytes::from(fs::read(model)?);
    let bundle = compile(bytes.clone(), &options)?;
    let out = Path::new(out);
    for file in &bundle.files {
        let path = out.join(&file.name);
        fs::create_dir_all(path.parent().unwrap_or(out))?;
        fs::write(path, &file.text)?;
    }
    let mut weights = vec![0u8; usize::try_from(bundle.weights.bytes)?];
    for (offset, data) in &bundle.weights.segments {
        let start = usize::try_from(*offset)?;
        weights[start..start + data.len()].copy_from_slice(data);
    }
    fs::write(out.join("weights.bin"), weights)?;
    fs::write(out.join("loops.txt"), emit(bytes, &options, Emit::Schedule)?)?;
    Ok(())
}
