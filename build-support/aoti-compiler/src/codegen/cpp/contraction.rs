//! Contractions as C++: which template, how work is split, and the epilogue as a lambda.

use super::{KernelText, PackedOperand};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, type_name};
use crate::codegen::pack::{ConvPath, ConvSizes, conv_path};
use crate::codegen::weights::Packing;
use crate::dtype::DType;
use crate::loops::{Axis, Convolution, Effect, MatMul, MatrixOperand, Program, Stage, Storage};
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};

/// Multiply-adds that are worth a thread.
const GRAIN: i64 = 65536;

/// The type that sums of an element type are kept in.
fn sum_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F32 => "f32",
        DType::F64 => "f64",
        DType::I64 => "i64",
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 => "i32",
    }
}

fn is_f32_sum(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32)
}

/// The epilogue as text: statements that use `lanes` and `sum`, lanes along `vector`.
fn epilogue(parameters: &Parameters, stage: &Stage, vector: Symbol) -> String {
    let context =
        Context { parameters, stage, prefix: String::new(), vector: Some(vector), earlier: Earlier::OneLane };
    let printed = context.print();
    format!("{}{}", printed.uniform, printed.body)
}

/// Keeps compilers quiet about positions that an epilogue has no use for.
fn unused(axes: &[Symbol]) -> String {
    let parts: Vec<String> = axes.iter().map(|axis| format!("(void){}", symbol_name(*axis))).collect();
    format!("  {};\n", parts.join(", "))
}

// --- matrix products ---------------------------------------------------------------------------------------------

pub(super) fn matmul(program: &Program, parameters: &Parameters, matmul: &MatMul, text: &mut KernelText) {
    let rank = matmul.axes.len();
    let (batch, matrix) = matmul.axes.split_at(rank - 2);
    let (row, column) = (&matrix[0], &matrix[1]);
    let packing = packed_product(program, matmul, column);
    let (m, n, k) = (scalar(&row.extent), scalar(&column.extent), scalar(&matmul.depth));
    let lambda = format!(
        "const auto epilogue = [&](i64 {}, i64 {}, auto lanes, auto sum) AOTI_LAMBDA {{\n{}{}}};\n",
        symbol_name(row.symbol),
        symbol_name(column.symbol),
        unused(&[row.symbol, column.symbol]),
        indent(&epilogue(parameters, &matmul.epilogue, column.symbol), 1)
    );
    let a = matrix_text(parameters, &matmul.a, matmul.dtype, "a");
    let b = match &packing {
        Some(_) => format!("const f32 *const b = (const f32 *){};\n", parameters.buffer(matmul.b.buffer)),
        None => matrix_text(parameters, &matmul.b, matmul.dtype, "b"),
    };
    let constants = format!("const i64 m = {m}, n = {n}, k = {k};\n");
    let scratch_bytes = match &packing {
        Some(_) if plain_rows(matmul) => None,
        Some(_) => Some("gemm_packed_scratch_bytes(m, k)"),
        None if is_f32_sum(matmul.dtype) => Some("gemm_general_scratch_bytes(m, n, k)"),
        None => None,
    };
    let scratch = match scratch_bytes {
        Some(bytes) => format!("run.scratch + worker * align({bytes})"),
        None => "nullptr".to_owned(),
    };
    if let Some(bytes) = scratch_bytes {
        let bytes =
            bytes.replace("(m, n, k)", &format!("({m}, {n}, {k})")).replace("(m, k)", &format!("({m}, {k})"));
        text.scratch = Some(format!("threads * align({bytes})"));
    }
    let call = |range: &str| match &packing {
        Some(_) => format!("gemm_packed({range}, n, k, a, b, {scratch}, epilogue);\n"),
        None if is_f32_sum(matmul.dtype) => {
            format!("gemm_general({range}, n, k, a, b, {scratch}, epilogue);\n")
        }
        None => {
            let rows = range.split(", ").take(2).collect::<Vec<_>>().join(", ");
            format!("gemm_any<{}, AOTI_LANES>({rows}, n, k, a, b, epilogue);\n", sum_type(matmul.dtype))
        }
    };
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    text.body = if batches.is(1) {
        let zero: String = batch
            .iter()
            .map(|axis| {
                format!("constexpr i64 {name} = 0;\n(void){name};\n", name = symbol_name(axis.symbol))
            })
            .collect();
        format!("{constants}{zero}{a}{b}{lambda}{}", split_matrix(&call, is_f32_sum(matmul.dtype)))
    } else {
        let positions = batch_positions(batch);
        let body = format!("{positions}{a}{b}{lambda}{}", call("0, m, 0, gemm_panels(n)"));
        format!(
            "{constants}parallel(run, {}, 1 + {GRAIN} / max_i64(m * n * k, 1), [&](i64 begin, i64 end, i64 worker) {{\n  (void)worker;\n  for (i64 unit = begin; unit < end; ++unit) {{\n{}  }}\n}});\n",
            scalar(&batches),
            indent(&body, 2)
        )
    };
    text.weight = 8 + matmul.epilogue.terms.len();
    if let Some(packing) = packing {
        text.packed.push(PackedOperand { buffer: matmul.b.buffer, packing });
    }
}

/// Splits one product over threads: many rows by blocks of rows, few by panels of columns.
fn split_matrix(call: &dyn Fn(&str) -> String, by_panels: bool) -> String {
    if !by_panels {
        return format!(
            "parallel(run, m, 1 + {GRAIN} / max_i64(n * k, 1), [&](i64 begin, i64 end, i64 worker) {{\n  (void)worker;\n  {}}});\n",
            call("begin, end, 0, 0")
        );
    }
    format!(
        "const bool by_rows = m >= 64;\n\
         constexpr i64 block = 14;\n\
         const i64 units = by_rows ? ceil_div(m, block) : gemm_panels(n);\n\
         parallel(run, units, 1 + {GRAIN} * units / max_i64(m * n * k, 1), [&](i64 begin, i64 end, i64 worker) {{\n\
         \x20 (void)worker;\n\
         \x20 const i64 m0 = by_rows ? begin * block : 0, m1 = by_rows ? min_i64(end * block, m) : m;\n\
         \x20 const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;\n\
         \x20 {}}});\n",
        call("m0, m1, p0, p1")
    )
}

fn batch_positions(axes: &[Axis]) -> String {
    let mut text = String::new();
    for (index, axis) in axes.iter().enumerate() {
        let stride = Expr::product(axes[index + 1..].iter().map(|axis| &axis.extent));
        text.push_str(&format!(
            "const i64 {name} = unit / ({}) % ({});\n(void){name};\n",
            scalar(&stride),
            scalar(&axis.extent),
            name = symbol_name(axis.symbol)
        ));
    }
    text
}

fn matrix_text(parameters: &Parameters, operand: &MatrixOperand, dtype: DType, name: &str) -> String {
    let pointer = parameters.buffer(operand.buffer);
    let start = if operand.offset.is(0) {
        pointer.to_owned()
    } else {
        format!("{pointer} + ({})", scalar(&operand.offset))
    };
    format!(
        "const Matrix<{}> {name}{{{start}, {}, {}}};\n",
        type_name(dtype),
        scalar(&operand.row_stride),
        scalar(&operand.column_stride)
    )
}

/// Whether rows of A are read in place without loss.
fn plain_rows(matmul: &MatMul) -> bool {
    let spread = matmul.a.row_stride.as_int().is_some_and(|stride| stride % 1024 != 0);
    matmul.dtype == DType::F32 && matmul.a.column_stride.is(1) && spread
}

/// The packing of a constant right operand that is the same in every batch.
fn packed_product(program: &Program, matmul: &MatMul, column: &Axis) -> Option<Packing> {
    let b = &matmul.b;
    let is_constant = matches!(program.buffers[b.buffer].storage, Storage::Constant(_));
    let read_elsewhere =
        matmul.a.buffer == b.buffer || matmul.epilogue.reads().any(|buffer| buffer == b.buffer);
    if !is_constant || read_elsewhere || !is_f32_sum(matmul.dtype) {
        return None;
    }
    let size = |expr: &Expr| expr.as_int().and_then(|value| usize::try_from(value).ok());
    Some(Packing::Product {
        offset: size(&b.offset)?,
        row_stride: size(&b.row_stride)?,
        col_stride: size(&b.column_stride)?,
        k: size(&matmul.depth)?,
        n: size(&column.extent)?,
    })
}

// --- convolutions ------------------------------------------------------------------------------------------------

/// How a convolution is computed.
enum Path {
    Product,
    Depthwise,
    Tiled,
    Any,
    Transposed,
    TransposedAny,
}

pub(super) fn convolution(
    program: &Program,
    parameters: &Parameters,
    conv: &Convolution,
    text: &mut KernelText,
) {
    let sizes = Sizes::new(program, conv);
    let path = choose_path(program, conv, &sizes);
    let (pixel_stage, pixel) = merge_pixels(conv);
    let (image, channel) = (conv.axes[0].symbol, conv.axes[1].symbol);
    let shape = sizes.literal();
    let (x, w) = (parameters.buffer(conv.input), parameters.buffer(conv.weight));
    let lambda = |vector: Symbol, parameters_text: String, zero: &str| {
        format!(
            "const auto epilogue = [&]({parameters_text}, auto lanes, auto sum) AOTI_LAMBDA {{\n{zero}{}}};\n",
            indent(&epilogue(parameters, &pixel_stage, vector), 1)
        )
    };
    let over_pixels = lambda(
        pixel,
        format!("i64 {}, i64 {}, i64 {}", symbol_name(image), symbol_name(channel), symbol_name(pixel)),
        &unused(&[image, channel, pixel]),
    );
    let work = "shape.out[0] * shape.out[1] * shape.out[2] * shape.in_channels / shape.groups * shape.kernel[0] * shape.kernel[1] * shape.kernel[2]";
    let prelude = format!(
        "const ConvShape shape{shape};\nconst i64 work = {work} * shape.batch * shape.out_channels;\n(void)work;\n"
    );
    let split = |units: &str, call: &str| {
        format!(
            "parallel(run, {units}, 1 + {GRAIN} * {units} / max_i64(work, 1), [&](i64 begin, i64 end, i64 worker) {{\n  (void)worker;\n  {call}\n}});\n"
        )
    };
    let sum = sum_type(conv.dtype);
    let loops = match path {
        Path::Product => {
            let k = sizes.depth();
            let zero =
                format!("  constexpr i64 {} = 0;\n{}", symbol_name(pixel), unused(&[image, channel, pixel]));
            let over_channels =
                lambda(channel, format!("i64 {}, i64 {}", symbol_name(image), symbol_name(channel)), &zero);
            text.packed.push(PackedOperand { buffer: conv.weight, packing: sizes.product_packing() });
            format!(
                "const i64 m = shape.batch, n = shape.out_channels, k = {k};\nconst Matrix<f32> a{{{x}, k, 1}};\n{over_channels}{}",
                split(
                    "gemm_panels(n)",
                    &format!("gemm_packed(0, m, begin, end, n, k, a, {w}, nullptr, epilogue);")
                )
            )
        }
        Path::Depthwise => format!(
            "{over_pixels}{}",
            split(
                "conv_depthwise_units(shape)",
                &format!("conv_depthwise(shape, begin, end, {x}, {w}, epilogue);")
            )
        ),
        Path::Tiled => {
            text.packed.push(PackedOperand { buffer: conv.weight, packing: sizes.conv_packing() });
            text.scratch = Some(format!("conv_scratch_bytes(ConvShape{shape})"));
            format!(
                "parallel(run, conv_pad_units(shape), 8, [&](i64 begin, i64 end, i64) {{ conv_pad(shape, begin, end, {x}, run.scratch); }});\n{over_pixels}{}",
                split(
                    "conv_units(shape)",
                    &format!("conv(shape, begin, end, {x}, {w}, run.scratch, epilogue);")
                )
            )
        }
        Path::Any => format!(
            "{over_pixels}{}",
            split(
                "conv_any_units(shape)",
                &format!("conv_any<{sum}, AOTI_LANES>(shape, begin, end, {x}, {w}, epilogue);")
            )
        ),
        Path::Transposed => {
            text.packed.push(PackedOperand { buffer: conv.weight, packing: sizes.transposed_packing() });
            text.scratch = Some(format!("conv_transposed_scratch_bytes(ConvShape{shape})"));
            format!(
                "{over_pixels}{}{}",
                split(
                    "conv_transposed_product_units(shape)",
                    &format!("conv_transposed_products(shape, begin, end, {x}, {w}, run.scratch);")
                ),
                split(
                    "conv_transposed_units(shape)",
                    "conv_transposed_gather(shape, begin, end, run.scratch, epilogue);"
                )
            )
        }
        Path::TransposedAny => format!(
            "{over_pixels}{}",
            split(
                "conv_any_units(shape)",
                &format!("conv_transposed_any<{sum}, AOTI_LANES>(shape, begin, end, {x}, {w}, epilogue);")
            )
        ),
    };
    text.body = format!("{prelude}{loops}");
    text.weight = 16 + conv.epilogue.terms.len();
}

/// Sizes in three spatial dimensions, missing leading ones 1.
struct Sizes {
    batch: Expr,
    in_channels: Expr,
    out_channels: Expr,
    groups: i64,
    input: [Expr; 3],
    kernel: [Expr; 3],
    stride: [i64; 3],
    dilation: [i64; 3],
    padding: [i64; 3],
    output: [Expr; 3],
}

impl Sizes {
    fn new(program: &Program, conv: &Convolution) -> Sizes {
        let (input, weight) = (&program.buffers[conv.input].shape, &program.buffers[conv.weight].shape);
        let spatial = conv.conv.stride.len();
        let lead = 3 - spatial.min(3);
        let exprs = |list: &dyn Fn(usize) -> Expr| -> [Expr; 3] {
            std::array::from_fn(|d| if d < lead { Expr::int(1) } else { list(d - lead) })
        };
        let ints = |list: &dyn Fn(usize) -> i64, missing: i64| -> [i64; 3] {
            std::array::from_fn(|d| if d < lead { missing } else { list(d - lead) })
        };
        Sizes {
            batch: input[0].clone(),
            in_channels: input[1].clone(),
            out_channels: conv.axes[1].extent.clone(),
            groups: conv.conv.groups,
            input: exprs(&|d| input[d + 2].clone()),
            kernel: exprs(&|d| weight[d + 2].clone()),
            stride: ints(&|d| conv.conv.stride[d], 1),
            dilation: ints(&|d| conv.conv.dilation[d], 1),
            padding: ints(&|d| conv.conv.padding[d].0, 0),
            output: exprs(&|d| conv.axes[d + 2].extent.clone()),
        }
    }

    fn literal(&self) -> String {
        let exprs = |list: &[Expr; 3]| list.iter().map(scalar).collect::<Vec<_>>().join(", ");
        let ints = |list: &[i64; 3]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "{{{}, {}, {}, {}, {{{}}}, {{{}}}, {{{}}}, {{{}}}, {{{}}}, {{{}}}}}",
            scalar(&self.batch),
            scalar(&self.in_channels),
            scalar(&self.out_channels),
            self.groups,
            exprs(&self.input),
            exprs(&self.kernel),
            ints(&self.stride),
            ints(&self.dilation),
            ints(&self.padding),
            exprs(&self.output)
        )
    }

    fn taps(&self) -> Expr {
        Expr::product(&self.kernel)
    }

    /// Length of a sum.
    fn depth(&self) -> usize {
        let channels = self.in_channels.as_int().unwrap_or(0) / self.groups.max(1);
        fixed(&self.taps()) * usize::try_from(channels).unwrap_or(0)
    }

    fn product_packing(&self) -> Packing {
        let k = self.depth();
        Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n: fixed(&self.out_channels) }
    }

    fn conv_packing(&self) -> Packing {
        let groups = usize::try_from(self.groups).unwrap_or(1);
        Packing::Conv { groups, channels: fixed(&self.out_channels), k: self.depth() }
    }

    fn transposed_packing(&self) -> Packing {
        let groups = usize::try_from(self.groups).unwrap_or(1);
        let rows = fixed(&self.out_channels) / groups.max(1) * fixed(&self.taps());
        Packing::ConvTransposed { groups, in_channels: fixed(&self.in_channels), rows }
    }

    fn is_fixed(&self) -> bool {
        let fixed = |expr: &Expr| expr.as_int().is_some();
        fixed(&self.in_channels) && fixed(&self.out_channels) && self.kernel.iter().all(fixed)
    }
}

fn fixed(expr: &Expr) -> usize {
    expr.as_int().and_then(|value| usize::try_from(value).ok()).unwrap_or(0)
}

fn choose_path(program: &Program, conv: &Convolution, sizes: &Sizes) -> Path {
    let is_constant = matches!(program.buffers[conv.weight].storage, Storage::Constant(_));
    let read_elsewhere =
        conv.input == conv.weight || conv.epilogue.reads().any(|buffer| buffer == conv.weight);
    let packable = is_constant && !read_elsewhere && conv.dtype == DType::F32 && sizes.is_fixed();
    let unpadded = sizes.padding.iter().all(|padding| *padding >= 0);
    if conv.conv.transposed {
        return if packable && unpadded { Path::Transposed } else { Path::TransposedAny };
    }
    if !packable || !unpadded {
        return Path::Any;
    }
    let number = |expr: &Expr| expr.as_int().and_then(|value| u64::try_from(value).ok());
    let whole = |expr: &Expr| number(expr).unwrap_or(0);
    let padding: [u64; 3] = std::array::from_fn(|d| u64::try_from(sizes.padding[d]).unwrap_or(0));
    let chosen = conv_path(&ConvSizes {
        in_channels: whole(&sizes.in_channels),
        out_channels: whole(&sizes.out_channels),
        groups: u64::try_from(sizes.groups).unwrap_or(1),
        input: std::array::from_fn(|d| number(&sizes.input[d])),
        kernel: std::array::from_fn(|d| whole(&sizes.kernel[d])),
        padding,
        output: std::array::from_fn(|d| number(&sizes.output[d])),
    });
    match chosen {
        ConvPath::Product => Path::Product,
        ConvPath::Depthwise => Path::Depthwise,
        ConvPath::Tiled => Path::Tiled,
        ConvPath::Any => Path::Any,
    }
}

/// The epilogue with its spatial axes merged into one axis of pixels, and that axis.
fn merge_pixels(conv: &Convolution) -> (Stage, Symbol) {
    let spatial = &conv.axes[2..];
    let pixel = spatial[0].symbol;
    let mut ranges = RangeTable::default();
    for axis in &conv.axes[..2] {
        ranges.set_extent(axis.symbol, axis.extent.clone());
    }
    let total = Expr::product(spatial.iter().map(|axis| &axis.extent));
    ranges.set_extent(pixel, total);
    let replace = |symbol: Symbol| {
        if symbol.kind != SymbolKind::Axis {
            return None;
        }
        let position = spatial.iter().position(|axis| axis.symbol == symbol)?;
        let stride = Expr::product(spatial[position + 1..].iter().map(|axis| &axis.extent));
        let quotient = Expr::sym(pixel).floor_div_in(&stride, &ranges);
        Some(if position == 0 { quotient } else { quotient.modulo_in(&spatial[position].extent, &ranges) })
    };
    let mut stage = conv.epilogue.clone();
    for typed in &mut stage.terms {
        typed.term.substitute(&replace, &ranges);
    }
    for effect in &mut stage.effects {
        if let Effect::Store { access, .. } = effect {
            access.substitute(&replace, &ranges);
        }
    }
    (stage, pixel)
}
