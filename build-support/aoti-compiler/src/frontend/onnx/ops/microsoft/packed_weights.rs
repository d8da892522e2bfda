//! Weights of few bits, several in a byte, with a scale for each block of a row.
//!
//! What unpacks them are element-wise nodes, which fuse with the product that reads them.

use super::activation::sum;
use super::operators;
use crate::dtype::{DType, bytes_of};
use crate::frontend::onnx::call::axis_of;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::{Rule, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{Constant, Coord, IntBinary, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "GatherBlockQuantized" => gather_block_quantized,
    "MatMulBnb4" => matmul_bnb4,
    "MatMulNBits" => matmul_n_bits,
}

fn needed(c: &Call, name: &str) -> Result<i64, RuleError> {
    let value = c.opt_int(name)?.filter(|value| *value > 0);
    value.ok_or_else(|| malformed(format!("`{name}` is missing or not positive")))
}

/// Numbers of `bits` bits at `coords` of a tensor of bytes, of which the last axis is packed, lowest bits first.
pub(super) fn unpacked(
    cx: &mut Onnx,
    bytes: ValueId,
    bits: i64,
    shape: &[Expr],
    mut coords: Vec<Expr>,
) -> Result<ValueId, RuleError> {
    let each = 8 / bits;
    let last = coords.last_mut().ok_or_else(|| malformed("packed numbers without an axis"))?;
    let position = last.clone();
    let ranges = cx.b.axis_ranges(shape);
    *last = position.floor_div_in(&Expr::int(each), &ranges);
    let byte = &position - &(&*last * each);
    let bytes = cx.b.cast(bytes, DType::U8);
    let bytes = cx.b.view(bytes, shape, coords)?;
    if each == 1 {
        return Ok(bytes);
    }
    let shift = cx.b.index(&byte * bits, shape);
    let shift = cx.b.cast(shift, DType::U8);
    let shifted = cx.binary(IntBinary::Shr, bytes, shift)?;
    cx.with_number(IntBinary::And, shifted, (1i64 << bits) - 1)
}

fn bits_of(c: &Call) -> Result<i64, RuleError> {
    match c.int("bits", 4)? {
        bits @ (2 | 4 | 8) => Ok(bits),
        other => Err(unsupported(format!("weights of {other} bits"))),
    }
}

/// Weights are `[columns, blocks, bytes of a block]`, the product is with their transpose.
fn matmul_n_bits(cx: &mut Onnx, c: &Call) -> Rule {
    if c.int("weight_prepacked", 0)? != 0 {
        return Err(unsupported("weights in the order of one processor"));
    }
    let (x, weight) = (c.tensor(0)?, c.tensor(1)?);
    let dtype = cx.b.dtype(x);
    let (depth, columns, block) = (needed(c, "K")?, needed(c, "N")?, needed(c, "block_size")?);
    let bits = bits_of(c)?;
    let blocks = (depth + block - 1) / block;
    let shape = [Expr::int(columns), Expr::int(depth)];
    let bytes = [Expr::int(columns), Expr::int(blocks * block * bits / 8)];
    let weight = cx.b.reshape(weight, &bytes)?;
    let order = match c.opt_tensor(4)? {
        // Columns may be of blocks in any order.
        Some(order) => Some(cx.required_shape(order, &shape[1..])?),
        None => None,
    };
    let numbers = unpacked(cx, weight, bits, &shape, vec![Expr::axis(0), Expr::axis(1)])?;
    let of_block = |cx: &mut Onnx, table: ValueId| -> Result<ValueId, RuleError> {
        let Some(order) = order else {
            let ranges = cx.b.axis_ranges(&shape);
            let at = Expr::axis(1).floor_div_in(&Expr::int(block), &ranges);
            return Ok(cx.b.view(table, &shape, vec![Expr::axis(0), at])?);
        };
        let order = cx.b.cast(order, DType::I64);
        let order = cx.b.expand(order, &shape)?;
        Ok(cx.b.gather(table, &[order], vec![Coord::Expr(Expr::axis(0)), Coord::Wrapped(0)], &shape)?)
    };
    let of_blocks = [Expr::int(columns), Expr::int(blocks)];
    let scales = cx.b.reshape(c.tensor(2)?, &of_blocks)?;
    let scales = of_block(cx, scales)?;
    let wide = cx.b.dtype(scales).compute();
    let zeros = match c.opt_tensor(3)? {
        None => cx.b.full((1i64 << (bits - 1)) as f64, wide, &[]),
        Some(zeros) if cx.b.dtype(zeros).is_float() => {
            let zeros = cx.b.reshape(zeros, &of_blocks)?;
            of_block(cx, zeros)?
        }
        Some(zeros) => {
            let packed = [Expr::int(columns), Expr::int((blocks * bits + 7) / 8)];
            let zeros = cx.b.reshape(zeros, &packed)?;
            let zeros = unpacked(cx, zeros, bits, &of_blocks, vec![Expr::axis(0), Expr::axis(1)])?;
            of_block(cx, zeros)?
        }
    };
    let weight = cx.apply([numbers, zeros, scales], wide, |[q, zero, scale]| (q - zero) * scale)?;
    let weight = cx.b.cast(weight, dtype);
    let weight = cx.b.transpose(weight, 0, 1)?;
    let product = cx.matmul(x, weight)?;
    one(match c.opt_tensor(5)? {
        Some(bias) => sum(cx, &[product, bias])?,
        None => product,
    })
}

/// The numbers that four bits stand for, by the kind of quantisation.
const FP4: [f32; 16] = [
    0.0,
    0.005_208_333,
    0.666_666_7,
    1.0,
    0.333_333_34,
    0.5,
    0.166_666_67,
    0.25,
    -0.0,
    -0.005_208_333,
    -0.666_666_7,
    -1.0,
    -0.333_333_34,
    -0.5,
    -0.166_666_67,
    -0.25,
];
/// Quantiles of a normal distribution.
const NF4: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// Weights are `[columns, depth]` in a row, blocks go across rows; the first of two numbers is in the upper bits.
fn matmul_bnb4(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    let (depth, columns, block) = (needed(c, "K")?, needed(c, "N")?, needed(c, "block_size")?);
    let table = match c.int("quant_type", 0)? {
        0 => FP4,
        1 => NF4,
        other => return Err(unsupported(format!("weights of kind {other}"))),
    };
    let transposed = c.flag("transB", true)?;
    let (rows, inner) = if transposed { (columns, depth) } else { (depth, columns) };
    let shape = [Expr::int(rows), Expr::int(inner)];
    let count = rows * inner;
    let bytes = cx.b.reshape(c.tensor(1)?, &[Expr::int((count + 1) / 2)])?;
    let bytes = cx.b.cast(bytes, DType::U8);
    let position = &(&Expr::axis(0) * inner) + &Expr::axis(1);
    let ranges = cx.b.axis_ranges(&shape);
    let at = position.floor_div_in(&Expr::int(2), &ranges);
    let is_second = &position - &(&at * 2);
    let bytes = cx.b.view(bytes, &shape, vec![at])?;
    let shift = cx.b.index(&(&Expr::int(1) - &is_second) * 4, &shape);
    let shift = cx.b.cast(shift, DType::U8);
    let code = cx.binary(IntBinary::Shr, bytes, shift)?;
    let code = cx.with_number(IntBinary::And, code, 15i64)?;
    let code = cx.b.cast(code, DType::I64);
    let table =
        cx.b.constant(Constant::new("", DType::F32, vec![16], bytes_of(&table, &f32::to_le_bytes)))?;
    let numbers = cx.b.gather(table, &[code], vec![Coord::Indirect(0)], &shape)?;
    let scales = cx.b.reshape(c.tensor(2)?, &[Expr::int((count + block - 1) / block)])?;
    let at = position.floor_div_in(&Expr::int(block), &ranges);
    let scales = cx.b.view(scales, &shape, vec![at])?;
    let weight = cx.apply([numbers, scales], dtype, |[number, scale]| number * scale)?;
    let weight = if transposed { cx.b.transpose(weight, 0, 1)? } else { weight };
    one(cx.matmul(x, weight)?)
}

/// Rows of a quantised table. Blocks of one scale are along another axis than the one that is looked up.
fn gather_block_quantized(cx: &mut Onnx, c: &Call) -> Rule {
    let (data, at, scales) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let narrow = cx.narrow.get(&data).copied();
    let is_packed = narrow.is_none() && cx.b.dtype(data) == DType::U8;
    let bits = if is_packed { bits_of(c)? } else { 8 };
    let mut shape = cx.b.shape(data);
    let rank = shape.len();
    if is_packed {
        let last = shape.last_mut().ok_or_else(|| malformed("a table without axes"))?;
        *last = &*last * (8 / bits);
    }
    let coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    let numbers = if is_packed { unpacked(cx, data, bits, &shape, coords.clone())? } else { data };
    let axis = axis_of(c.int("quantize_axis", 1)?, rank)?;
    let block = c.int("block_size", 128)?;
    let mut of_block = coords;
    if block > 0 {
        let ranges = cx.b.axis_ranges(&shape);
        of_block[axis] = Expr::axis(axis).floor_div_in(&Expr::int(block), &ranges);
    } else {
        of_block[axis] = Expr::int(0);
    }
    let dtype = cx.b.dtype(scales);
    let scale_shape = cx.b.shape(scales);
    let scales = cx.b.view(scales, &shape, of_block.clone())?;
    let zeros = match c.opt_tensor(3)? {
        Some(zeros) if is_packed => {
            let coords = (0..rank).map(Expr::axis).collect();
            let zeros = unpacked(cx, zeros, bits, &scale_shape, coords)?;
            cx.b.view(zeros, &shape, of_block)?
        }
        Some(zeros) => cx.b.view(zeros, &shape, of_block)?,
        None if is_packed => cx.b.full((1i64 << (bits - 1)) as f64, dtype, &[]),
        None => cx.b.full(0.0, dtype, &[]),
    };
    let table = cx.apply([numbers, zeros, scales], dtype, |[q, zero, scale]| (q - zero) * scale)?;
    let axis = axis_of(c.int("gather_axis", 0)?, rank)?;
    let at = cx.b.cast(at, DType::I64);
    let index = cx.b.shape(at);
    let result = [&shape[..axis], &index, &shape[axis + 1..]].concat();
    let at = cx.b.view(at, &result, (axis..axis + index.len()).map(Expr::axis).collect())?;
    let coord = |own: usize| match own.cmp(&axis) {
        std::cmp::Ordering::Less => Coord::Expr(Expr::axis(own)),
        std::cmp::Ordering::Equal => Coord::Wrapped(0),
        std::cmp::Ordering::Greater => Coord::Expr(Expr::axis(own - 1 + index.len())),
    };
    one(cx.b.gather(table, &[at], (0..rank).map(coord).collect(), &result)?)
}
