//! Conversions, copies and what does nothing at inference.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};

type Rule = Result<Outputs, RuleError>;

rules! {
    view "aten.to.dtype" => convert,
    view "aten.to.device" => convert,
    view "aten.to.dtype_layout" => convert,
    view "aten.to.other" => convert,
    view "aten.to.prim_dtype" => convert,
    view "aten.to.prim_Device" => convert,
    view "aten.type_as.default" => convert,
    pure "aten._to_copy.default" => convert,
    pure "aten._cast_Float.default" => to_output_type,
    pure "aten._cast_Double.default" => to_output_type,
    pure "aten._cast_Half.default" => to_output_type,
    pure "aten._cast_Long.default" => to_output_type,
    pure "aten._cast_Int.default" => to_output_type,
    pure "aten._cast_Short.default" => to_output_type,
    pure "aten._cast_Char.default" => to_output_type,
    pure "aten._cast_Byte.default" => to_output_type,
    pure "prims.convert_element_type.default" => convert,
    pure "aten.clone.default" => same,
    view "aten.contiguous.default" => same,
    view "aten.lift.default" => same,
    view "aten.lift_fresh.default" => same,
    pure "aten.lift_fresh_copy.default" => same,
    view "aten.conj.default" => same,
    view "aten._conj.default" => same,
    pure "aten._conj_copy.default" => same,
    pure "aten.conj_physical.default" => same,
    view "aten.resolve_conj.default" => same,
    view "aten.resolve_neg.default" => same,
    view "aten.positive.default" => same,
    pure "aten.pin_memory.default" => same,
}

fn same(_cx: &mut Context, a: &Args) -> Rule {
    Ok(a.only()?.into())
}

/// To the type that is asked for, or that of another tensor. Traces of functional transforms have numbers here, too.
fn convert(cx: &mut Context, a: &Args) -> Rule {
    let x = match (a.left()?, a.output_dtype()) {
        (number @ Operand::Number(_), Some(dtype)) => number.to_value(cx, dtype),
        _ => a.only()?,
    };
    let dtype = if a.has("other") {
        let other = a.tensor("other")?;
        Some(cx.b.dtype(other))
    } else {
        a.opt_dtype("dtype").ok().flatten().or(a.output_dtype())
    };
    Ok(dtype.map_or(x, |dtype| cx.b.cast(x, dtype)).into())
}

fn to_output_type(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    Ok(a.output_dtype().map_or(x, |dtype| cx.b.cast(x, dtype)).into())
}
