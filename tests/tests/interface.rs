//! The C interface, called by a program in C: states, prepared runs, kernels that are told of, and which code was picked.

use std::process::Command;

use aoti_runtime::{DType, DynTensor, ErrorCode, Inline, Workspace};
use aoti_tests::native;
use aoti_tests::project::Project;

/// Adds its state to each row, and one to the state. The scan and the sum behind it are kernels of their own, so that a
/// run needs a workspace.
const COUNTER: &str = "\
graph \"counter\" {
  symbol s0 \"batch\" in 1..64 from input 0 axis 0
  origin o0 = \"aten.cumsum.default of cumsum\" \"m.py:2 in forward: y = x.cumsum(0)\" \"scan\"
  origin o1 = \"aten.add.Tensor of add\" \"m.py:3 in forward: y = y + self.total\" \"counter\"
  const c0 \"total\": f32[3] = [10.0, 20.0, 30.0]
  const c1: f32[] = [1.0]
  input %0 \"x\": f32[s0, 3]
  input %1 \"total\": f32[3] state c0
  %2: f32[s0, 3] = cumsum %0 axis 0 @ o0
  %3: f32[s0, 3] = view %1 [i1]
  %4: f32[s0, 3] = add %2, %3 @ o1
  %5: f32[] = constant c1
  %6: f32[3] = view %5 []
  %7: f32[3] = add %1, %6 @ o1
  output %4 \"y\"
  output %7 \"total\" state 1
}
";

#[test]
fn a_program_in_c_uses_every_entry() {
    let manifest = "[package.metadata.aoti]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n\
                    [package.metadata.aoti.models.counter]\npath = \"models/counter.aoti\"\n";
    let project = Project::new(manifest);
    project.write("models/counter.aoti", COUNTER);
    project.build();
    let folder = project.artefacts("counter");
    let program = folder.join("interface");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/interface.c");
    let compiled = Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", source, "-I"])
        .arg(&folder)
        .arg("-I")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../build-support/aoti-compiler/include"))
        .arg(project.library("counter"))
        .args(["-lm", "-o"])
        .arg(&program)
        .output()
        .expect("gcc is there");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().expect("the program runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.stdout, b"all as it should be\n");
}

/// Rows of a table: by an index of which negative ones count from the end, and by one that has none.
const ROWS: &str = r#"graph "rows" {
  origin o0 = "aten.embedding.default of rows" "rows.py:3" ""
  input %0 "table": f32[5, 2]
  input %1 "at": i64[3]
  %2: i64[3, 2] = view %1 [i0]
  %3: f32[3, 2] = gather %0, %2 [wrap $0, i1] @ o0
  %4: f32[3, 2] = gather %0, %2 [$0, i1] @ o0
  output %3 "counted"
  output %4 "plain"
}
"#;

#[test]
fn an_index_outside_its_dimension_is_told_with_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.aoti");
    std::fs::write(&path, ROWS).unwrap();
    let model = native::load("rows", &path);
    let run = |at: [i64; 3]| {
        let table = native::numbers(&[5, 2], 3);
        let mut index = DynTensor::zeros(DType::I64, &[3]).unwrap();
        index.as_mut_slice().unwrap().copy_from_slice(&at);
        let [mut counted, mut plain] = [DType::F32; 2].map(DynTensor::empty);
        let outputs = &mut [&mut counted, &mut plain];
        model.run(&[table.view(), index.view()], outputs, None, &mut Workspace::new(), &Inline)
    };
    run([4, 0, 2]).unwrap();
    for (at, said) in [
        ([1, 300, -7], "index 300 is outside "),
        ([1, -6, 2], "index -6 is outside "),
        ([0, 0, 5], "index 5 is outside "),
        ([-1, 0, 0], "index -1 is outside 0..=4 in "),
    ] {
        let error = run(at).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Index);
        assert!(error.message().starts_with(said), "{at:?}: {error}");
        let bounds = [" -5..=4 in ", " 0..=4 in "];
        assert!(bounds.iter().any(|bounds| error.message().contains(bounds)), "{at:?}: {error}");
    }
}
