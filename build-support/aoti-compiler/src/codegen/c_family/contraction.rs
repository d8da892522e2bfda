//! What contractions have in common on every target: the type of sums, an epilogue over merged pixels, the scores of attention.

use super::expr::scalar;
use super::terms::type_name;
use crate::dtype::DType;
use crate::kernels::Types;
use crate::loops::{ConvShape, Convolution, Effect, Stage};
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};

/// The type that sums of an element type are kept in.
pub(in crate::codegen) fn sum_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F8(_) | DType::F32 => "f32",
        DType::F64 => "f64",
        // Sums wrap around, and their bits are the same with and without a sign.
        DType::I64 | DType::U64 => "i64",
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U16 | DType::U32 => "i32",
    }
}

/// The types of a contraction of such elements.
pub(in crate::codegen) fn types(dtype: DType) -> Types {
    Types { element: type_name(dtype), sum: sum_type(dtype) }
}

/// The terms of a score of attention as statements that return it, printed as an epilogue is.
pub(in crate::codegen) fn scores(stage: &Stage, epilogue: impl FnOnce(&Stage) -> String) -> String {
    let value = stage.effects.iter().find_map(|effect| match effect {
        Effect::Accumulate { value, .. } => Some(*value),
        Effect::Store { .. } => None,
    });
    let value = value.expect("a verified program feeds scores to an accumulator");
    let terms = Stage { effects: vec![], ..stage.clone() };
    format!("{}return t{value};\n", epilogue(&terms))
}

/// The epilogue with its spatial axes merged into one axis of pixels, and that axis.
pub(in crate::codegen) fn merge_pixels(conv: &Convolution) -> (Stage, Symbol) {
    let spatial = conv.spatial();
    let pixel = spatial[0].symbol;
    let mut ranges = RangeTable::default();
    for axis in [conv.image(), conv.channel()] {
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

/// A `ConvShape` of the headers, with sizes of images printed as `size` does.
pub(in crate::codegen) fn literal(shape: &ConvShape, size: &dyn Fn(&Expr) -> String) -> String {
    let exprs = |list: &[Expr; 3], print: &dyn Fn(&Expr) -> String| {
        list.iter().map(print).collect::<Vec<_>>().join(", ")
    };
    let ints = |list: &[i64; 3]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "{{{}, {}, {}, {}, {{{}}}, {{{}}}, {{{}}}, {{{}}}, {{{}}}, {{{}}}}}",
        size(&shape.batch),
        size(&shape.in_channels),
        size(&shape.out_channels),
        shape.groups,
        exprs(&shape.input, size),
        exprs(&shape.kernel, &scalar),
        ints(&shape.stride),
        ints(&shape.dilation),
        ints(&shape.padding),
        exprs(&shape.output, size)
    )
}
