//! `verify` on a model file: with samples beside it, against the reference evaluator, and what it says where results differ.

use std::path::Path;
use std::process::{Command, Output};

/// A product of whole numbers, which is exact, and an exponential behind it, which is not. The sum keeps them apart.
const MODEL: &str = "\
graph \"steps\" {
  origin o0 = \"aten.cumsum.default of cumsum\" \"m.py:7 in forward: y = x.cumsum(0)\" \"scan\"
  origin o1 = \"aten.exp.default of exp_1\" \"m.py:8 in forward: z = y.exp()\" \"body\"
  origin o2 = \"aten.cumsum.default of cumsum_1\" \"m.py:9 in forward: z.cumsum(0)\" \"end\"
  input %x \"x\": f32[5, 3]
  %y \"sums\": f32[5, 3] = cumsum %x axis 0 @ o0
  %z \"powers\": f32[5, 3] = exp %y @ o1
  %t \"total\": f32[5, 3] = cumsum %z axis 0 @ o2
  output %y \"sums\"
  output %t \"total\"
}
";

fn verify(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.args(["aoti", "verify"]).args(arguments).current_dir(folder);
    command.env("AOTI_CACHE_DIR", folder.join("cache"));
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

/// A safetensors file of tensors of f32 [5, 3].
fn samples(path: &Path, tensors: &[(&str, Vec<f32>)]) {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, values) in tensors {
        let from = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let to = data.len();
        header
            .push(format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":[5,3],\"data_offsets\":[{from},{to}]}}"));
    }
    let header = format!("{{{}}}", header.join(","));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(path, bytes).unwrap();
}

/// The running sums of three columns.
fn sums(values: &[f64]) -> Vec<f64> {
    let mut sums = values.to_vec();
    for index in 3..sums.len() {
        sums[index] += sums[index - 3];
    }
    sums
}

#[test]
fn a_model_file_is_compared_with_the_reference_and_with_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("steps.aoti"), MODEL).unwrap();
    let (code, said) = verify(folder, &["steps.aoti"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 passed, 0 failed"), "{said}");

    let x: Vec<f64> = (0..15).map(|n| f64::from(n % 3)).collect();
    let y = sums(&x);
    let t = sums(&y.iter().map(|y| y.exp()).collect::<Vec<_>>());
    let f32s = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<_>>();
    let of = |t: Vec<f32>| [("inputs.x", f32s(&x)), ("outputs.sums", f32s(&y)), ("outputs.total", t)];
    samples(&folder.join("steps.safetensors"), &of(f32s(&t)));
    let (code, said) = verify(folder, &["steps.aoti"]);
    assert_eq!(code, Some(0), "{said}");

    // What is expected is wrong, not the code: every value is as the reference evaluator has it.
    let mut wrong = f32s(&t);
    wrong[7] += 1.0;
    samples(&folder.join("steps.safetensors"), &of(wrong));
    let (code, said) = verify(folder, &["--bisect", "steps.aoti"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("`total`") || said.contains("output 1"), "{said}");
    assert!(said.contains("values that could be compared"), "{said}");

    samples(&folder.join("steps.safetensors"), &[("inputs.0", f32s(&x)), ("outputs.0", f32s(&y))]);
    let (code, said) = verify(folder, &["steps.aoti"]);
    assert!(code == Some(1) && said.contains("no tensor `outputs.1`"), "{said}");
}

#[test]
fn the_first_value_that_differs_is_named_with_its_line() {
    // Nothing may be off, so the last digits of the exponential are a difference, and the sums before it are none.
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("case");
    std::fs::create_dir(&case).unwrap();
    std::fs::write(case.join("model.aoti"), MODEL).unwrap();
    std::fs::write(case.join("case.json"), "{\"atol\": 0, \"rtol\": 0}").unwrap();
    let x: Vec<f32> = (0..15).map(|n| (n % 4) as f32).collect();
    samples(&case.join("inputs.safetensors"), &[("0", x.clone())]);
    samples(&case.join("outputs.safetensors"), &[("0", x.clone()), ("1", x)]);
    let (code, said) = verify(folder.path(), &["--bisect", "case"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the first value that differs is"), "{said}");
    assert!(said.contains("m.py:8") && !said.contains("at m.py:7"), "{said}");
}

#[test]
fn models_build_to_the_same_bytes_twice() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("steps.aoti"), MODEL).unwrap();
    let (code, said) = verify(folder.path(), &["--reproduce", "--level", "x86-64", "steps.aoti"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 built to the same bytes twice, 0 not"), "{said}");
    assert!(!folder.path().join("cache").join("actions").exists(), "the cache has no part in it");
}
