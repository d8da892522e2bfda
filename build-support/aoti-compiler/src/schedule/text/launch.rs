//! Calls and launches in the text form of schedules.

use super::parse::{field, one};
use crate::graph::text::bracketed;
use crate::kernels::gemm::tensor_map::{TensorMap, Window};
use crate::kernels::launch::{Launch, MapArgument, Trigger};
use crate::loops::{Buffer, BufferId};
use crate::schedule::calls::{Argument, Call, FunctionId};
use crate::symbolic::{Expr, Node, Symbol};
use crate::text::{Cursor, SyntaxError};
use cranelift_entity::PrimaryMap;

/// A line for the functions of a kernel, and what they are given.
pub(in crate::schedule) fn call_line(call: &Call) -> String {
    let Call { functions, arguments, sizes } = call;
    let functions: String = functions.iter().map(|function| format!(" {function}")).collect();
    let argument = |Argument { buffer, start }: &Argument| format!(" {buffer} [{start}]");
    let arguments: String = arguments.iter().map(argument).collect();
    let sizes: Vec<Expr> = sizes.iter().map(|symbol| Expr::sym(*symbol)).collect();
    format!("call{functions} of{arguments} sizes {}", bracketed(&sizes))
}

/// The call that a line says.
pub(super) fn parse_call(
    cursor: &mut Cursor<'_>,
    buffers: &PrimaryMap<BufferId, Buffer>,
) -> Result<Call, SyntaxError> {
    cursor.expect_word("call")?;
    let mut call = Call::default();
    while !cursor.eat_word("of") {
        call.functions.push(FunctionId::from_u32(cursor.reference('f')?));
    }
    while !cursor.eat_word("sizes") {
        let buffer = super::parse::buffer(cursor, buffers)?;
        call.arguments.push(Argument { buffer, start: one(cursor)? });
    }
    call.sizes = symbols(cursor)?.ok_or_else(|| cursor.error("expected sizes"))?;
    Ok(call)
}

/// A list of symbols; nothing where something else is in it.
fn symbols(cursor: &mut Cursor<'_>) -> Result<Option<Vec<Symbol>>, SyntaxError> {
    let symbol = |own: &Expr| if let Node::Sym(symbol) = own.node() { Some(*symbol) } else { None };
    Ok(cursor.expressions()?.iter().map(symbol).collect())
}

/// A line for the launch, and one for each map of a tensor.
pub(super) fn print(launch: &Launch) -> Vec<String> {
    let Launch {
        entry,
        grid,
        threads,
        producer_threads,
        cluster,
        resident,
        shared,
        takes_scratch,
        persistent,
        trigger,
        maps,
    } = launch;
    let mut line = format!("launch grid [{grid}] threads {threads}");
    if *entry != 0 {
        line += &format!(" entry {entry}");
    }
    if *producer_threads > 0 {
        line += &format!(" producers {producer_threads}");
    }
    if *cluster != 1 {
        line += &format!(" cluster {cluster}");
    }
    if *resident != 1 {
        line += &format!(" resident {resident}");
    }
    if !shared.is(0) {
        line += &format!(" shared [{shared}]");
    }
    for (has, word) in [(*takes_scratch, " scratch"), (*persistent, " persistent")] {
        line += if has { word } else { "" };
    }
    line += match trigger {
        Trigger::AtEnd => " next end",
        Trigger::AtStart => " next start",
        Trigger::InTemplate => " next template",
    };
    std::iter::once(line).chain(maps.iter().map(map)).collect()
}

fn map(own: &MapArgument) -> String {
    let MapArgument { buffer, map, extents } = own;
    let TensorMap { start, sizes, strides, batches, window } = map;
    let batches: Vec<Expr> = batches.iter().map(|symbol| Expr::sym(*symbol)).collect();
    format!(
        "tensor-map {buffer} from [{start}] sizes {} strides {} box {} along {}",
        bracketed(sizes),
        bracketed(strides),
        bracketed(extents),
        bracketed(&batches)
    ) + &window.as_ref().map_or_else(String::new, window_text)
}

/// How windows move, in the text forms of schedules and of runs.
pub(crate) fn window_text(Window { lower, upper, steps }: &Window) -> String {
    format!(" windows from {} to {} by {}", bracketed(lower), bracketed(upper), bracketed(steps))
}

/// The same read back, if it is there.
pub(crate) fn parse_window(cursor: &mut Cursor<'_>) -> Result<Option<Window>, SyntaxError> {
    if !cursor.eat_word("windows") {
        return Ok(None);
    }
    cursor.expect_word("from")?;
    let lower = cursor.integers()?;
    cursor.expect_word("to")?;
    let upper = cursor.integers()?;
    cursor.expect_word("by")?;
    Ok(Some(Window { lower, upper, steps: cursor.integers()? }))
}

/// The launch that a line says, if there is one.
pub(super) fn parse(
    cursor: &mut Cursor<'_>,
    buffers: &PrimaryMap<BufferId, Buffer>,
) -> Result<Option<Launch>, SyntaxError> {
    if !cursor.eat_word("launch") {
        return Ok(None);
    }
    cursor.expect_word("grid")?;
    let grid = one(cursor)?;
    let threads = field(cursor, "threads")?;
    let entry = if cursor.eat_word("entry") { cursor.number()? } else { 0 };
    let producer_threads = if cursor.eat_word("producers") { cursor.number()? } else { 0 };
    let cluster = if cursor.eat_word("cluster") { cursor.number()? } else { 1 };
    let resident = if cursor.eat_word("resident") { cursor.number()? } else { 1 };
    let shared = if cursor.eat_word("shared") { one(cursor)? } else { Expr::int(0) };
    let [takes_scratch, persistent] = ["scratch", "persistent"].map(|word| cursor.eat_word(word));
    cursor.expect_word("next")?;
    let trigger = match cursor.word()? {
        "end" => Trigger::AtEnd,
        "start" => Trigger::AtStart,
        "template" => Trigger::InTemplate,
        _ => return Err(cursor.error("expected `end`, `start` or `template`")),
    };
    let mut maps = Vec::new();
    while cursor.eat_word("tensor-map") {
        maps.push(parse_map(cursor, buffers)?);
    }
    Ok(Some(Launch {
        entry,
        grid,
        threads,
        producer_threads,
        cluster,
        resident,
        shared,
        takes_scratch,
        persistent,
        trigger,
        maps,
    }))
}

fn parse_map(
    cursor: &mut Cursor<'_>,
    buffers: &PrimaryMap<BufferId, Buffer>,
) -> Result<MapArgument, SyntaxError> {
    let buffer = super::parse::buffer(cursor, buffers)?;
    cursor.expect_word("from")?;
    let start = one(cursor)?;
    cursor.expect_word("sizes")?;
    let sizes = cursor.expressions()?;
    cursor.expect_word("strides")?;
    let strides = cursor.expressions()?;
    cursor.expect_word("box")?;
    let extents = cursor.integers()?;
    cursor.expect_word("along")?;
    let batches = symbols(cursor)?.ok_or_else(|| cursor.error("expected axes"))?;
    let window = parse_window(cursor)?;
    let map = TensorMap { start, sizes, strides, batches, window };
    Ok(MapArgument { buffer, map, extents })
}
