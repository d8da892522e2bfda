//! Building for 64-bit Arm on another processor: the library is one for Arm, and its kernels are vector code.

use std::path::Path;
use std::process::Command;

use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use aoti_tests::{models, tools};

/// A product of matrices with a function of each element behind it, and a function of each element alone.
const MODEL: &str = "\
graph \"products\" {
  symbol s0 \"rows\" in 1..1024 from input 0 axis 0
  input %0 \"x\": f32[s0, 64]
  input %1 \"w\": f32[64, 96]
  %2: f32[s0, 96] = matmul %0, %1
  %3 \"squashed\": f32[s0, 96] = tanh %2
  %4 \"grown\": f32[s0, 64] = exp %0
  output %3 \"y\"
  output %4 \"z\"
}
";

/// An instruction: its address, its name and its operands.
type Instruction = (u64, String, String);

/// The functions of a disassembly with their instructions.
fn functions(text: &str) -> Vec<(String, Vec<Instruction>)> {
    let mut found: Vec<(String, Vec<Instruction>)> = Vec::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            found.push((name.to_owned(), Vec::new()));
        }
        let mut columns = line.split('\t');
        let address = columns.next().and_then(|word| word.trim().strip_suffix(':'));
        let address = address.and_then(|word| u64::from_str_radix(word, 16).ok());
        let (_, name, operands) = (columns.next(), columns.next(), columns.next());
        if let (Some(address), Some(name), Some((_, list))) = (address, name, found.last_mut()) {
            list.push((address, name.to_owned(), operands.unwrap_or_default().to_owned()));
        }
    }
    found
}

/// The loops without loops in them, as ranges of instructions.
fn innermost(list: &[Instruction]) -> Vec<&[Instruction]> {
    let target = |operands: &str| {
        let word = operands.split_once(" <")?.0.rsplit([' ', ',']).next()?;
        u64::from_str_radix(word, 16).ok()
    };
    let at = |address: u64| list.iter().position(|(other, ..)| *other == address);
    let back = list.iter().enumerate().filter_map(|(end, (address, name, operands))| {
        let begin = target(operands).filter(|to| to <= address && name.starts_with('b') && name != "bl")?;
        Some((at(begin)?, end))
    });
    let loops: Vec<(usize, usize)> = back.collect();
    let inside = |outer: &(usize, usize), inner: &(usize, usize)| {
        outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1
    };
    let leaves = loops.iter().filter(|outer| !loops.iter().any(|inner| inside(outer, inner)));
    leaves.map(|&(begin, end)| &list[begin..=end]).collect()
}

/// The one loop of a micro-kernel that multiplies by vectors, so many times in each step.
#[track_caller]
fn hot_loop((name, list): &(String, Vec<Instruction>), products: usize) -> &[Instruction] {
    let count = |body: &[Instruction]| body.iter().filter(|(_, name, _)| name == "fmla").count();
    let hot: Vec<_> = innermost(list).into_iter().filter(|body| count(body) == products).collect();
    assert_eq!(hot.len(), 1, "{name}: {list:?}");
    hot[0]
}

fn objdump(arguments: &[&str], library: &Path) -> String {
    let output = Command::new("aarch64-linux-gnu-objdump").args(arguments).arg(library).output();
    String::from_utf8(output.expect("the tool was found before").stdout).expect("disassemblies are ASCII")
}

#[test]
fn libraries_for_arm_are_built_and_their_loops_are_vector_code() {
    if !tools::arm_compiler() {
        return;
    }
    let project = Project::new("").with_model("digits.pt2", &models::digits());
    project.write("models/products.aoti", MODEL);
    let mut build = project.aoti(&["build", "--target", "aarch64-unknown-linux-gnu"]);
    Ended::of(build.env("CXX_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-g++")).succeeded();
    let mut all = Vec::new();
    for model in ["products", "digits"] {
        let library = project.library(model);
        let headers = objdump(&["-f"], &library);
        assert!(headers.contains("elf64-littleaarch64") && !headers.contains("x86-64"), "{headers}");
        all.extend(functions(&objdump(&["-d"], &library)));
    }
    let of = |name: &str| {
        let found: Vec<_> = all.iter().filter(|(function, _)| function.contains(name)).collect();
        assert!(!found.is_empty(), "there is no `{name}`");
        found
    };
    // Blocks of 24 sums, six rows by four vectors, of a product and of a convolution whose channels are last. Each sum stays
    // in its register.
    for kernel in ["gemm_kernelILi6ELi1ELi4E", "pixel_kernelILi6ELi4E"] {
        for function in of(kernel) {
            let body = hot_loop(function, 24);
            let products = body.iter().filter(|(_, name, _)| name == "fmla");
            let are_vectors = products.clone().all(|(_, _, operands)| operands.contains(".4s"));
            let spills = body.iter().any(|(_, _, operands)| operands.contains("[sp"));
            assert!(are_vectors && !spills, "{kernel}: {body:?}");
        }
    }
    for kernel in ["k_gemm", "k_grown"] {
        let kernels = of(kernel);
        let vectors = kernels.iter().flat_map(|(_, list)| list).filter(|(_, name, operands)| {
            ["fmul", "fmla", "fadd"].contains(&name.as_str()) && operands.contains(".4s")
        });
        assert!(vectors.count() >= 4, "`{kernel}` is not vector code");
    }
}
