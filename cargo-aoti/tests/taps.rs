//! What `run` shows of a run: tensors that kernels write (`--dump`), and the first that is not a number (`--check-nan`).

use std::path::Path;
use std::process::{Command, Output};

/// Two kernels, as the sum needs whole rows of the logarithm, and an output that is read again.
const MODEL: &str = "\
graph \"logs\" {
  origin o0 = \"aten.log of log_1\" \"m.py:7 in forward: x.log()\" \"body.norm\"
  origin o1 = \"aten.sum of sum_1\" \"m.py:8 in forward: y.sum(0)\" \"body\"
  input %x \"x\": f32[3, 4]
  input %i \"i\": i64[2]
  %y: f32[3, 4] = log %x @ o0
  %s: f32[4] = sum %y axes [0] @ o1
  %t: f32[4] = exp %s @ o1
  output %y \"logarithms\"
  output %t \"product\"
  output %i \"same\"
}
";

/// A loop that multiplies by ten, as often as its number says.
const LOOP: &str = "\
graph \"loop\" {
  input %x \"x\": f32[4]
  input %n \"n\": i64[]
  %z: f32[4], %left: i64[] = while %x, %n carried 2 condition graph \"c\" {
    input %0 \"a\": f32[4]
    input %1 \"n\": i64[]
    %2: i64[] = full 0
    %3: bool[] = gt %1, %2
    output %3 \"more\"
  } body graph \"b\" {
    input %0 \"a\": f32[4]
    input %1 \"n\": i64[]
    %2: f32[4] = full 10.0
    %3: f32[4] = mul %0, %2
    %4: i64[] = full 1
    %5: i64[] = sub %1, %4
    output %3 \"a\"
    output %5 \"n\"
  }
  output %z \"z\"
}
";

/// A file of tensors, each with its key, type and sizes.
fn safetensors(tensors: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (key, dtype, sizes, bytes) in tensors {
        let from = data.len();
        data.extend_from_slice(bytes);
        let to = data.len();
        header.push(format!(
            "\"{key}\":{{\"dtype\":\"{dtype}\",\"shape\":{sizes},\"data_offsets\":[{from},{to}]}}"
        ));
    }
    let header = format!("{{{}}}", header.join(","));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Inputs of the first model: ones but for the element at (1, 2).
fn inputs(value: f32) -> Vec<u8> {
    let mut x = [1.0; 12];
    x[6] = value;
    safetensors(&[("x", "F32", "[3,4]", floats(&x)), ("i", "I64", "[2]", vec![0xff; 16])])
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.args(["aoti", "run"]).args(arguments).current_dir(folder);
    command.env("AOTI_CACHE_DIR", folder.join("cache")).env_remove("CARGO_TARGET_DIR").output().unwrap()
}

/// The exit code and what stands on stderr.
fn end(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

/// The tensors of `f32` in a file that `run` wrote, by name.
fn dumped(path: &Path) -> Vec<(String, Vec<f32>)> {
    let bytes = std::fs::read(path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let values =
        |data: &[u8]| data.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    let floats = tensors.tensors().into_iter().filter(|(_, view)| view.dtype() == safetensors::Dtype::F32);
    let mut all: Vec<_> = floats.map(|(name, view)| (name, values(view.data()))).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

#[test]
fn the_first_that_is_not_a_number_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.aoti"), MODEL).unwrap();
    std::fs::write(folder.path().join("in"), inputs(2.0)).unwrap();
    let check = ["m.aoti", "--inputs", "in", "--check-nan"];
    let (code, errors) = end(&run(folder.path(), &check));
    assert_eq!(code, 0, "{errors}");
    for (value, what) in [(-1.0, "NaN"), (0.0, "-inf")] {
        std::fs::write(folder.path().join("in"), inputs(value)).unwrap();
        // Nobody is told who does not ask.
        assert_eq!(end(&run(folder.path(), &check[..3])).0, 0);
        let (code, errors) = end(&run(folder.path(), &check));
        assert_eq!(code, 1, "{errors}");
        let wanted = format!("is the first that wrote {what} (element 6 of 12), in `");
        assert!(errors.contains(&wanted), "{errors}");
        for place in ["computes aten.log of log_1", "at m.py:7 in forward: x.log()"] {
            assert!(errors.contains(place), "{errors}");
        }
    }
}

#[test]
fn inputs_are_blamed_before_kernels() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.aoti"), MODEL).unwrap();
    for (value, what) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        std::fs::write(folder.path().join("in"), inputs(value)).unwrap();
        let arguments = ["m.aoti", "--inputs", "in", "--check-nan", "--dump", "logarithms"];
        let (code, errors) = end(&run(folder.path(), &arguments));
        let wanted = format!("input `x` holds {what} (element 6 of 12), before any kernel runs");
        assert!(code == 1 && errors.contains(&wanted), "{errors}");
        // What was asked for is kept all the same.
        let kept = dumped(&folder.path().join("dump.safetensors"));
        assert!(kept[0].0 == "logarithms" && !kept[0].1[6].is_finite(), "{kept:?}");
    }
}

#[test]
fn what_kernels_write_is_kept_by_the_name_of_a_value_or_a_kernel() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.aoti"), MODEL).unwrap();
    std::fs::write(folder.path().join("in"), inputs(2.0)).unwrap();
    let logarithms: Vec<f32> = (0..12).map(|at| if at == 6 { 2f32.ln() } else { 0.0 }).collect();
    let near = |values: &[f32], wanted: &[f32]| {
        values.len() == wanted.len() && values.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6)
    };
    let arguments = ["m.aoti", "--inputs", "in", "--dump", "logarithms", "--dump", "product"];
    let (code, errors) = end(&run(folder.path(), &arguments));
    assert_eq!(code, 0, "{errors}");
    let kept = dumped(&folder.path().join("dump.safetensors"));
    assert_eq!(kept.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["logarithms", "product"]);
    assert!(near(&kept[0].1, &logarithms) && near(&kept[1].1, &[1.0, 1.0, 2.0, 1.0]), "{kept:?}");

    // An unknown name is refused before the run, with those that there are; each of them keeps what its kernel writes.
    let (code, errors) = end(&run(folder.path(), &["m.aoti", "--inputs", "in", "--dump", "cosines"]));
    assert!(code == 1 && errors.contains("is called `cosines`; kernels are `"), "{errors}");
    let names = errors.split("kernels are ").nth(1).unwrap().split('\n').next().unwrap();
    let mut all = Vec::new();
    for name in names.split('`').filter(|name| name.chars().any(char::is_alphabetic)) {
        let arguments = ["m.aoti", "--inputs", "in", "--dump", name, "--dump-to", "own.safetensors"];
        assert_eq!(end(&run(folder.path(), &arguments)).0, 0, "{name}");
        all.extend(dumped(&folder.path().join("own.safetensors")));
    }
    assert!(all.iter().any(|(name, values)| name == "logarithms" && near(values, &logarithms)), "{all:?}");
    // A place alone says nothing of what is to be kept.
    assert_eq!(end(&run(folder.path(), &["m.aoti", "--dump-to", "x"])).0, 2);
}

#[test]
fn of_a_kernel_in_a_loop_the_last_is_kept_and_the_first_that_overflows_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.aoti"), LOOP).unwrap();
    let inputs = |times: i64| {
        let (x, n) = (floats(&[1.0, 2.0, 3.0, 4.0]), times.to_le_bytes().to_vec());
        safetensors(&[("x", "F32", "[4]", x), ("n", "I64", "[]", n)])
    };
    std::fs::write(folder.path().join("in"), inputs(3)).unwrap();
    let (_, errors) = end(&run(folder.path(), &["m.aoti", "--inputs", "in", "--dump", "?"]));
    let names = errors.split("kernels are ").nth(1).unwrap().split('\n').next().unwrap();
    let mut arguments = vec!["m.aoti", "--inputs", "in", "--check-nan"];
    for name in names.split('`').filter(|name| name.chars().any(char::is_alphabetic)) {
        arguments.extend(["--dump", name]);
    }
    let (code, errors) = end(&run(folder.path(), &arguments));
    assert_eq!(code, 0, "{errors}");
    let kept = dumped(&folder.path().join("dump.safetensors"));
    assert!(kept.iter().any(|(_, values)| *values == [1e3, 2e3, 3e3, 4e3]), "{kept:?}");
    std::fs::write(folder.path().join("in"), inputs(50)).unwrap();
    let (code, errors) = end(&run(folder.path(), &["m.aoti", "--inputs", "in", "--check-nan"]));
    // 4e38 is the first that f32 does not hold.
    assert!(code == 1 && errors.contains("wrote inf (element 3 of 4)"), "{errors}");
}
