//! Conditions on data that kernels note: a run fails with the condition's message when it is waited for, and one with other data does
//! not.

use super::emulated::Program;
use super::{GFX9, NVIDIA, case, is_installed, program};
use aoti_compiler::dtype::DType;
use aoti_compiler::graph::text;
use aoti_compiler::interpret::Tensor;
use std::process::Output;

const DIVISION: &str = "graph \"division\" {
  input %a \"a\": i64[300]
  input %b \"b\": i64[300]
  %zero: i64[300] = full 0
  %fits: bool[300] = ne %b, %zero
  %all: bool[] = all %fits axes [0]
  assert %all \"a division by zero\"
  %y: i64[300] = floor_div %a, %b
  output %y \"y\"
}
";

/// What the program does with these divisors.
fn divided_by(program: &Program, divisors: [i64; 300]) -> Output {
    let graph = text::parse(DIVISION).expect("the graph parses");
    let numbers = |all: [i64; 300]| {
        let bytes = all.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        Tensor::new(DType::I64, vec![300], bytes).expect("as many bytes as elements")
    };
    let inputs = [numbers([7; 300]), numbers(divisors)];
    std::fs::write(program.folder.join("case"), case(&graph, &inputs)).expect("the folder is writable");
    program.command().args(["case", "result"]).output().expect("the program was compiled")
}

#[test]
fn runs_fail_with_the_message_of_a_condition_on_data() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    for machine in [NVIDIA, GFX9] {
        let program = program(&gcc, "noted", ("division", DIVISION), machine);
        assert!(divided_by(&program, [2; 300]).status.success());
        let mut divisors = [2; 300];
        divisors[299] = 0;
        let output = divided_by(&program, divisors);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{errors}");
        assert!(errors.contains("a division by zero"), "{errors}");
    }
}
