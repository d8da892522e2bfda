//! Products and convolutions of small integers are exact, to the largest number that sums may reach.

use aoti_compiler::graph::text::parse;
use aoti_compiler::interpret::{Tensor, evaluate};
use aoti_runtime::{DType, DynTensor, Inline, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::families;
use bytes::Bytes;

/// A product of such a depth with weights.
fn product(depth: usize, weight: &str) -> String {
    format!(
        "graph \"product\" {{ const c0 \"w\": i8[{depth}, 37] weight {weight} input %x \"x\": u8[9, {depth}]
         %q: i8[{depth}, 37] = constant c0 %w: i32[{depth}, 37] = cast %q %i: i32[9, {depth}] = cast %x
         %z: i32[9, {depth}] = full 128 %c: i32[9, {depth}] = sub %i, %z
         %y: i32[9, 37] = matmul %c, %w output %y \"y\" }}"
    )
}

/// A convolution of images of eleven by eleven pixels.
fn convolution(inputs: i64, weight: &str, elements: &str, groups: i64) -> String {
    let channels = &weight[..2];
    format!(
        "graph \"convolution\" {{ const c0 \"w\": i8[{weight}] weight {elements} input %x \"x\": u8[2, {inputs}, 11, 11]
         %q: i8[{weight}] = constant c0 %w: i32[{weight}] = cast %q %i: i32[2, {inputs}, 11, 11] = cast %x
         %z: i32[2, {inputs}, 11, 11] = full 128 %c: i32[2, {inputs}, 11, 11] = sub %i, %z
         %y: i32[2, {channels}, 11, 11] = conv %c, %w stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups {groups}
         output %y \"y\" }}"
    )
}

/// A product of signed bytes, whose depth is odd.
fn odd_product(depth: usize, rows: usize) -> String {
    format!(
        "graph \"odd\" {{ const c0 \"w\": i8[{depth}, 37] weight = random 5 input %x \"x\": u8[{rows}, {depth}]
         %q: i8[{depth}, 37] = constant c0 %w: i32[{depth}, 37] = cast %q %b: i8[{rows}, {depth}] = cast %x
         %i: i32[{rows}, {depth}] = cast %b %z: i32[{rows}, {depth}] = full -5 %c: i32[{rows}, {depth}] = sub %i, %z
         %y: i32[{rows}, 37] = matmul %c, %w output %y \"y\" }}"
    )
}

/// A convolution with strides of images whose channels make no whole words.
fn strided_convolution(channels: i64, groups: i64) -> String {
    let inputs = channels * groups;
    format!(
        "graph \"strided\" {{ const c0 \"w\": i8[48, {channels}, 3, 2] = splat -128 input %x \"x\": u8[2, {inputs}, 9, 8]
         %q: i8[48, {channels}, 3, 2] = constant c0 %w: i32[48, {channels}, 3, 2] = cast %q
         %i: i32[2, {inputs}, 9, 8] = cast %x %z: i32[2, {inputs}, 9, 8] = full 7 %c: i32[2, {inputs}, 9, 8] = sub %i, %z
         %y: i32[2, 48, 5, 9] = conv %c, %w stride [2, 1] padding [1:1, 1:1] dilation [1, 1] groups {groups}
         output %y \"y\" }}"
    )
}

/// A depthwise convolution of bytes whose zero is zero, of `kernel` by `kernel` taps.
fn depthwise(channels: i64, kernel: i64, stride: i64, dtype: &str) -> String {
    let (pad, size) = (kernel / 2, 10 / stride + 1);
    format!(
        "graph \"depthwise\" {{ const c0 \"w\": i8[{channels}, 1, {kernel}, {kernel}] weight = random 6
         input %x \"x\": u8[2, {channels}, 11, 11]
         %q: i8[{channels}, 1, {kernel}, {kernel}] = constant c0 %w: i32[{channels}, 1, {kernel}, {kernel}] = cast %q
         %b: {dtype}[2, {channels}, 11, 11] = cast %x %i: i32[2, {channels}, 11, 11] = cast %b
         %z: i32[2, {channels}, 11, 11] = full {zero} %c: i32[2, {channels}, 11, 11] = sub %i, %z
         %y: i32[2, {channels}, {size}, {size}] = conv %c, %w stride [{stride}, {stride}] padding [{pad}:{pad}, {pad}:{pad}]
         dilation [1, 1] groups {channels} output %y \"y\" }}",
        zero = if dtype == "i8" { -128 } else { 0 }
    )
}

#[test]
fn sums_of_small_integers_are_exact() {
    let Some(compiler) = batch::compiler() else { return };
    let folder = tempfile::tempdir().expect("a folder for the libraries");
    let models = [
        product(1024, "= splat -128"),
        product(2500, "= random 1"),
        product(2500, "= splat -128"),
        convolution(20, "24, 20, 3, 3", "= random 2", 1),
        convolution(110, "32, 110, 3, 3", "= splat 127", 1),
        convolution(20, "20, 1, 3, 3", "= random 3", 20),
        depthwise(40, 3, 1, "u8"),
        depthwise(35, 3, 2, "i8"),
        depthwise(5, 4, 1, "u8").replace("padding [2:2, 2:2]", "padding [2:1, 1:2]"),
        depthwise(72, 5, 2, "u8"),
        depthwise(1040, 7, 1, "u8"),
        odd_product(131, 1),
        // Sums of several chains, of more rows than are split at a time.
        odd_product(8201, 120),
        odd_product(1003, 29),
        strided_convolution(3, 1),
        strided_convolution(8, 3),
    ];
    let texts = models.clone().map(Bytes::from);
    // With the instruction for products of bytes, where this machine has it, and without.
    let build = |processors: Processors, name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).expect("a folder for a library");
        batch::build(&compiler, &texts, processors, &folder).expect("they compile")
    };
    let built = [build(Processors::ThisOne, "own"), build(Processors::All, "all")];
    for (text, model) in built.iter().flat_map(|built| models.iter().zip(built)) {
        let graph = parse(text).expect("it parses");
        let shape = &graph.ty(graph.inputs[0].value).shape;
        let sizes: Vec<usize> = shape.iter().map(|size| size.as_int().expect("a number") as usize).collect();
        let count = sizes.iter().product();
        // The first makes sums as large as they can be, the others odd ones, and large ones of odd numbers.
        let below = |most: usize| (0..count).map(|k| (k * 97 % most) as u8).collect();
        for data in [vec![0; count], below(255), below(61)] {
            let x = DynTensor::from_bytes(DType::U8, &sizes, &data).expect("the data fit");
            let mut y = DynTensor::empty(DType::I32);
            let mut workspace = Workspace::new();
            model.run(&[x.view()], &mut [&mut y], None, &mut workspace, &Inline).expect("it runs");
            let expected: Vec<Tensor> = evaluate(&graph, &[families::to_interpreter(&x)]).expect("it runs");
            assert_eq!(families::to_interpreter(&y), expected[0], "{text}");
        }
    }
}
