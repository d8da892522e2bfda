//! Weights stay as narrow as a program has them, and are stored once: libraries are about as large as the numbers that they hold, and
//! give what the program's own graph does.

use aoti_compiler::graph::text::parse;
use aoti_compiler::interpret::evaluate;
use aoti_runtime::{DType, DynTensor, Inline, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::families;
use bytes::Bytes;

/// A product of `x` with weights of 8-bit integers, each column scaled; `zero` is what stands for zero.
fn dequantised(rows: usize, zero: i64) -> String {
    format!(
        "graph \"dequantised\" {{ const c0 \"q\": i8[203, 70] = random 1 const c1 \"s\": f32[203] = random 2
         input %x \"x\": f32[{rows}, 70] %q: i8[203, 70] = constant c0 %i: i32[203, 70] = cast %q
         %z: i32[203, 70] = full {zero} %d: i32[203, 70] = sub %i, %z %f: f32[203, 70] = cast %d
         %s: f32[203] = constant c1 %t: f32[203, 70] = view %s [i0] %g: f32[203, 70] = mul %f, %t
         %w: f32[70, 203] = view %g [i1, i0] %y: f32[{rows}, 203] = matmul %x, %w output %y \"y\" }}"
    )
}

/// A product with weights of 4-bit integers, of which groups of so many along the depth have a scale.
fn grouped(rows: usize, group: usize, zero: i64) -> String {
    let groups = 320 / group;
    format!(
        "graph \"grouped\" {{ const c0 \"q\": i8[203, 320] = random 1 const c1 \"s\": f32[203, {groups}] = random 2
         input %x \"x\": f32[{rows}, 320] %q: i8[203, 320] = constant c0 %i: i32[203, 320] = cast %q
         %f: i32[203, 320] = full 15 %b: i32[203, 320] = bit_and %i, %f %z: i32[203, 320] = full {zero}
         %d: i32[203, 320] = sub %b, %z %g: f32[203, 320] = cast %d
         %p: f32[203, {groups}, {group}] = view %g [i0, i1 * {group} + i2] %s: f32[203, {groups}] = constant c1
         %t: f32[203, {groups}, {group}] = view %s [i0, i1] %m: f32[203, {groups}, {group}] = mul %p, %t
         %v: f32[203, 320] = view %m [i0, i1 // {group}, i1 % {group}] %w: f32[320, 203] = view %v [i1, i0]
         %y: f32[{rows}, 203] = matmul %x, %w output %y \"y\" }}"
    )
}

/// The same with weights that lie as `[k, n]`, and of each group a number that is no integer is added to them.
fn side_by_side(rows: usize, group: usize) -> String {
    let groups = 320 / group;
    format!(
        "graph \"side\" {{ const c0 \"q\": i8[320, 203] = random 1 const c1 \"s\": f32[{groups}, 203] = random 2
         const c2 \"z\": f32[{groups}, 203] = random 3 input %x \"x\": f32[{rows}, 320] %q: i8[320, 203] = constant c0
         %i: i32[320, 203] = cast %q %f: i32[320, 203] = full 15 %b: i32[320, 203] = bit_and %i, %f
         %g: f32[320, 203] = cast %b %s: f32[{groups}, 203] = constant c1 %t: f32[320, 203] = view %s [i0 // {group}, i1]
         %m: f32[320, 203] = mul %g, %t %z: f32[{groups}, 203] = constant c2
         %o: f32[320, 203] = view %z [i0 // {group}, i1] %w: f32[320, 203] = sub %m, %o
         %y: f32[{rows}, 203] = matmul %x, %w output %y \"y\" }}"
    )
}

/// Two products of a row of halves with weights in groups, which become one.
fn of_halves(dtype: &str) -> String {
    let one = |at: usize| {
        format!(
            "%q{at}: i8[96, 320] = constant c{at} %g{at}: f32[96, 320] = cast %q{at}
             %t{at}: f32[96, 320] = view %s [i0, i1 // 32] %m{at}: f32[96, 320] = mul %g{at}, %t{at}
             %h{at}: {dtype}[96, 320] = cast %m{at} %w{at}: {dtype}[320, 96] = view %h{at} [i1, i0]
             %y{at}: {dtype}[3, 96] = matmul %h, %w{at}"
        )
    };
    format!(
        "graph \"halves\" {{ const c0 \"a\": i8[96, 320] = random 1 const c1 \"b\": i8[96, 320] = random 4
         const c2 \"s\": f32[96, 10] = random 2 input %x \"x\": f32[3, 320] %h: {dtype}[3, 320] = cast %x
         %s: f32[96, 10] = constant c2 {} {} %p: {dtype}[3, 96] = mul %y0, %y1 %y: f32[3, 96] = cast %p output %y \"y\" }}",
        one(0),
        one(1)
    )
}

/// A product with weights of `float8`, each column scaled.
fn of_float8(rows: usize, dtype: &str) -> String {
    format!(
        "graph \"float8\" {{ const c0 \"q\": {dtype}[203, 70] = random 1 const c1 \"s\": f32[203] = random 2
         input %x \"x\": f32[{rows}, 70] %q: {dtype}[203, 70] = constant c0 %f: f32[203, 70] = cast %q
         %s: f32[203] = constant c1 %t: f32[203, 70] = view %s [i0] %g: f32[203, 70] = mul %f, %t
         %w: f32[70, 203] = view %g [i1, i0] %y: f32[{rows}, 203] = matmul %x, %w output %y \"y\" }}"
    )
}

/// Rows of a table of bytes that are scaled in groups.
fn looked_up() -> String {
    "graph \"rows\" { const c0 \"q\": i8[600, 64] = random 1 const c1 \"s\": f32[600, 2] = random 2 input %x \"x\": f32[5, 3]
     %q: i8[600, 64] = constant c0 %s: f32[600, 2] = constant c1 %f: f32[600, 64] = cast %q
     %v: f32[600, 64] = view %s [i0, i1 // 32] %t: f32[600, 64] = mul %f, %v %a: f32[5] = sum %x axes [1]
     %h: f32[5] = full 100.0 %b: f32[5] = mul %a, %h %i: i64[5] = cast %b %k: i64[5, 64] = view %i [i0]
     %y: f32[5, 64] = gather %t, %k [wrap $0, i1] output %y \"y\" }"
        .to_owned()
}

/// The scores of every row of a table, for rows that are looked up in it.
fn tied(rows: usize, columns: usize, dtype: &str) -> String {
    format!(
        "graph \"tied\" {{ const c0 \"e\": {dtype}[{rows}, {columns}] = random 3 input %x \"x\": f32[3, 7]
         %a: f32[3] = sum %x axes [1] %b: f32[3] = full 1000.0 %c: f32[3] = mul %a, %b %d: i64[3] = cast %c
         %n: i64[3] = full {rows} %m: i64[3] = remainder %d, %n %i: i64[3, {columns}] = view %m [i0]
         %e: {dtype}[{rows}, {columns}] = constant c0 %l: {dtype}[3, {columns}] = gather %e, %i [wrap $0, i1]
         %t: {dtype}[{columns}, {rows}] = view %e [i1, i0] %s: {dtype}[3, {rows}] = matmul %l, %t
         output %l \"l\" output %s \"s\" }}"
    )
}

/// Models, the most bytes that their weights may have, and how far results may be from the graph's.
fn cases() -> Vec<(String, usize, f64)> {
    let bytes = 224 * 70 + 4 * 203 + 128;
    let dequantised =
        [(1, 0), (3, -5), (16, 3), (45, 0)].map(|(rows, zero)| (dequantised(rows, zero), bytes, 1e-5));
    let tied = [("f32", 5003, 64, 4), ("f16", 9001, 64, 2), ("f64", 2051, 70, 8)].map(|own| {
        let (dtype, rows, columns, size) = own;
        (tied(rows, columns, dtype), (rows + 31) * columns * size + 128, if size == 2 { 2e-3 } else { 1e-5 })
    });
    let grouped = [(1, 32, 8), (3, 16, 0), (8, 64, -3), (9, 32, 8), (70, 160, 7)].map(|own| {
        let (rows, group, zero) = own;
        (grouped(rows, group, zero), 128 + 7 * (320 / group) * (192 + 16 * group), 1e-5)
    });
    let side_by_side = [(1, 32), (6, 64), (40, 32)]
        .map(|(rows, group)| (side_by_side(rows, group), 128 + 7 * (320 / group) * (320 + 16 * group), 1e-5));
    let of_halves = ["f16", "bf16"].map(|dtype| {
        (of_halves(dtype), 256 + 6 * 10 * (192 + 32 * 32), if dtype == "f16" { 4e-3 } else { 3e-2 })
    });
    let of_float8 = [(1, "f8e4m3fn"), (5, "f8e5m2"), (33, "f8e4m3fn")]
        .map(|(rows, dtype)| (of_float8(rows, dtype), bytes, 1e-5));
    let looked_up = [(looked_up(), 600 * 64 + 600 * 8 + 128, 1e-6)];
    let others = side_by_side.into_iter().chain(of_halves).chain(of_float8).chain(looked_up);
    dequantised.into_iter().chain(grouped).chain(tied).chain(others).collect()
}

#[test]
fn weights_are_stored_once_and_as_they_are() {
    let Some(compiler) = batch::compiler() else { return };
    let folder = tempfile::tempdir().expect("a folder for the libraries");
    let texts = cases().into_iter().map(|(text, ..)| Bytes::from(text)).collect::<Vec<_>>();
    let models = batch::build(&compiler, &texts, Processors::All, folder.path()).expect("they compile");
    for ((text, bytes, tolerance), model) in cases().into_iter().zip(&models) {
        let options = batch::options("m".to_owned());
        let bundle =
            aoti_compiler::compile::compile(Bytes::from(text.clone()), &options).expect("it compiles");
        let blob = bundle.weights.bytes;
        assert!(blob <= bytes as u64, "{blob} bytes instead of {bytes}: {text}");
        let graph = parse(&text).expect("it parses");
        let shape = &graph.ty(graph.inputs[0].value).shape;
        let sizes: Vec<usize> = shape.iter().map(|size| size.as_int().expect("a number") as usize).collect();
        let number = |k: usize| ((k * 97 % 61) as f32 / 31.0 - 1.0).to_le_bytes();
        let data: Vec<u8> = (0..sizes.iter().product()).flat_map(number).collect();
        let x = DynTensor::from_bytes(DType::F32, &sizes, &data).expect("the data fit");
        let expected = evaluate(&graph, &[families::to_interpreter(&x)]).expect("it runs");
        let dtype = ["f16", "f32", "f64"].iter().position(|own| expected[0].dtype().name() == *own);
        let dtype = [DType::F16, DType::F32, DType::F64][dtype.expect("results are floats")];
        let mut results: Vec<DynTensor> = expected.iter().map(|_| DynTensor::empty(dtype)).collect();
        let mut results: Vec<&mut DynTensor> = results.iter_mut().collect();
        let mut workspace = Workspace::new();
        model.run(&[x.view()], &mut results, None, &mut workspace, &Inline).expect("it runs");
        for (own, expected) in results.iter().zip(&expected) {
            let (own, expected) = (families::to_interpreter(own).to_f64(), expected.to_f64());
            let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
            for (own, expected) in own.into_iter().zip(expected) {
                assert!((own - expected).abs() <= tolerance * largest, "{own} {expected}: {text}");
            }
        }
    }
}
