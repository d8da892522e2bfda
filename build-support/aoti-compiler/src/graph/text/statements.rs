//! Prints what occurs in every form.

use super::data;
use crate::graph::{
    self, Condition, Constant, ConstantSource, Conv, Guard, Origin, SymbolInfo, SymbolSource,
};
use crate::symbolic::Interval;
use std::fmt::Write;

/// Constants of more elements than this are left out of the short form.
const SHORT_ELEMENTS: usize = 16;

/// How much of a form is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// Everything: it can be parsed again.
    Full,
    /// For people: without the data of larger constants.
    Short,
}

/// A list.
pub(crate) fn bracketed<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// A string literal; the inverse is the cursor's `string`.
pub(crate) fn quoted(text: &str) -> String {
    let mut result = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => result.push_str("\\\""),
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(result, "\\u{{{:x}}}", u32::from(c));
            }
            c => result.push(c),
        }
    }
    result.push('"');
    result
}

/// A name behind what it names, if there is one.
pub(crate) fn quoted_name(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {}", quoted(text)) }
}

/// Bounds, both included.
pub(crate) fn range_text(range: Interval) -> String {
    let bound = |value: i64| match value {
        i64::MIN => "-inf".to_owned(),
        i64::MAX => "inf".to_owned(),
        value => value.to_string(),
    };
    format!("{}..{}", bound(range.min), bound(range.max))
}

/// The statement that declares a size symbol.
pub(crate) fn symbol_line(index: usize, symbol: &SymbolInfo) -> String {
    let source = match symbol.source {
        SymbolSource::InputDim { input, axis } => format!("input {input} axis {axis}"),
        SymbolSource::InputValue { input } => format!("value {input}"),
        SymbolSource::Data => "data".to_owned(),
    };
    let range = range_text(symbol.range);
    let most = symbol.most.as_ref().map(|most| format!(" most [{most}]")).unwrap_or_default();
    format!("symbol s{index} {} in {range} from {source}{most}", quoted(&symbol.name))
}

/// The statement of a condition that holds when a run begins.
pub(crate) fn guard_line(guard: &Guard) -> String {
    format!("guard {}", guard_text(guard))
}

/// A condition and what is said of it.
pub(crate) fn guard_text(guard: &Guard) -> String {
    format!("{}{}", condition_text(&guard.condition), quoted_name(&guard.message))
}

/// A condition: `[s0] le [4] and ([s0 % 2] eq [0] or [s1] eq [0])`.
pub(crate) fn condition_text(condition: &Condition) -> String {
    let joined = |parts: &[Condition], word: &str, none: &str| {
        if parts.is_empty() {
            return none.to_owned();
        }
        let parts: Vec<String> = parts.iter().map(condition_text).collect();
        format!("({})", parts.join(word))
    };
    match condition {
        Condition::Compare(left, relation, right) => format!("[{left}] {} [{right}]", relation.name()),
        Condition::Fits(expr) => format!("fits [{expr}]"),
        Condition::All(parts) => joined(parts, " and ", "true"),
        Condition::Any(parts) => joined(parts, " or ", "false"),
    }
}

/// A place in the user's program.
pub(crate) fn origin_text(origin: &Origin) -> String {
    format!("{} {} {}", quoted(&origin.node), quoted(&origin.source), quoted(&origin.module))
}

/// The statement that names a call that a kernel computes.
pub(crate) fn note_line(origin: &Origin) -> String {
    let part = |word: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!(" {word} {}", quoted(text)) }
    };
    let (at, within) = (part("at", &origin.source), part("in", &origin.module));
    format!("note {}{at}{within}", quoted(&origin.node))
}

/// Type and data of a constant.
pub(crate) fn constant_text(constant: &Constant, detail: Detail) -> String {
    let elements = constant.data.len() / constant.dtype.size();
    let data = if detail == Detail::Short && elements > SHORT_ELEMENTS {
        "...".to_owned()
    } else {
        data::print(constant.dtype, &constant.data)
    };
    let ty = format!("{}{}", constant.dtype, bracketed(&constant.sizes));
    match &constant.source {
        ConstantSource::Fixed => format!("{ty} = {data}"),
        ConstantSource::Weight => format!("{ty} weight = {data}"),
        ConstantSource::Derived { recipe, output } => {
            let recipe = match detail {
                Detail::Full => graph::text::print(recipe),
                Detail::Short => graph::text::print_short(recipe),
            };
            format!("{ty} = {data} from {output} {}", recipe.trim_end())
        }
    }
}

/// The parameters of a convolution, a space before each.
pub(crate) fn conv_text(conv: &Conv) -> String {
    let padding: Vec<String> = conv.padding.iter().map(|(low, high)| format!("{low}:{high}")).collect();
    let mut text = format!(
        " stride {} padding {} dilation {} groups {}",
        bracketed(&conv.stride),
        bracketed(&padding),
        bracketed(&conv.dilation),
        conv.groups
    );
    if conv.transposed {
        text.push_str(" transposed");
    }
    if conv.output_padding != vec![0; conv.stride.len()] {
        let _ = write!(text, " output_padding {}", bracketed(&conv.output_padding));
    }
    text
}
