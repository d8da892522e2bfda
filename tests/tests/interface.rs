//! The C interface, called by a program in C: states, prepared runs, kernels that are told of, and which code was picked.

use aoti_tests::project::Project;
use std::process::Command;

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
