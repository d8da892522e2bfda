//! Parses schedules. Buffers and templates exist when they are mentioned; all else is the verifier's business.

use super::launch;
use crate::diagnostic::Diagnostics;
use crate::kernels::mapping::{
    Along, Block, CpuMapping, GpuMapping, Grain, IndexWidth, Lanes, Mapping, MathPath, Meeting, Rows,
    Scattering, Split, Teams, Tile,
};
use crate::kernels::{Algorithm, Expansion, Form, GroupTiles, PackedOperand, Packing, Scratch, Selection};
use crate::loops::{self, Buffer, BufferId, KernelId};
use crate::schedule::Schedule;
use crate::schedule::memory::{LateId, MemoryPlan};
use crate::symbolic::Expr;
use crate::target::{CpuTarget, GpuTarget, MathLibrary, Target, Tf32};
use crate::text::{Cursor, SyntaxError};
use cranelift_entity::PrimaryMap;

type Buffers = PrimaryMap<BufferId, Buffer>;

/// Parses the text form. A fault is reported with line and column; the result is not verified.
pub fn parse(text: &str) -> Result<Schedule, Diagnostics> {
    Cursor::whole(text, schedule)
}

fn schedule(cursor: &mut Cursor<'_>) -> Result<Schedule, SyntaxError> {
    cursor.expect_word("schedule")?;
    let target = target(cursor)?;
    cursor.expect('{')?;
    let (mut choices, mut mappings) = (PrimaryMap::new(), PrimaryMap::new());
    let (mut calls, mut launches) = (PrimaryMap::new(), PrimaryMap::new());
    let program = loops::text::parse_with(cursor, &mut |cursor, buffers| {
        choices.push(choice(cursor, buffers)?);
        mappings.push(mapping(cursor)?);
        calls.push(launch::parse_call(cursor, buffers)?);
        let mut all = Vec::new();
        while let Some(launch) = launch::parse(cursor, buffers)? {
            all.push(launch);
        }
        launches.push(all);
        Ok(())
    })?;
    let mut memory = MemoryPlan::default();
    cursor.expect_word("arena")?;
    memory.arena_bytes = one(cursor)?;
    memory.total_bytes = if cursor.eat_word("total") { one(cursor)? } else { memory.arena_bytes.clone() };
    while cursor.eat_word("place") {
        let buffer = buffer(cursor, &program.buffers)?;
        memory.offsets.insert(buffer, one(cursor)?);
    }
    while cursor.eat_word("late") {
        let buffer = buffer(cursor, &program.buffers)?;
        memory.late.insert(buffer, LateId::from_u32(cursor.reference('m')?));
    }
    while cursor.eat_word("late-scratch") {
        let kernel = KernelId::from_u32(cursor.reference('k')?);
        if !program.kernels.is_valid(kernel) {
            return Err(cursor.error("there is no such kernel"));
        }
        memory.late_scratch.insert(kernel, LateId::from_u32(cursor.reference('m')?));
    }
    cursor.expect('}')?;
    let early = choices.iter().filter(|(kernel, _)| !memory.late_scratch.contains_key(kernel));
    let scratch = early.map(|(_, choice): (_, &Selection)| &choice.scratch);
    memory.scratch = scratch.filter(|scratch| !scratch.is_empty()).cloned().collect();
    Ok(Schedule { target, program, choices, mappings, calls, launches, memory })
}

fn target(cursor: &mut Cursor<'_>) -> Result<Target, SyntaxError> {
    match cursor.word()? {
        "cpu" => {
            let mut levels = Vec::new();
            while let Some(level) = cursor.optional_string()? {
                levels.push(level);
            }
            Ok(Target::Cpu(CpuTarget::new(&levels).with_libraries(&libraries(cursor)?)))
        }
        "gpu" => {
            let known = GpuTarget::named(&cursor.string()?);
            let known = known.ok_or_else(|| cursor.error("there is no such architecture"))?;
            let [matmul, conv] = ["tf32-matmul", "tf32-conv"].map(|word| cursor.eat_word(word));
            let libraries = libraries(cursor)?;
            Ok(Target::Gpu(known.allowing(Tf32 { matmul, conv }).with_libraries(&libraries)))
        }
        _ => Err(cursor.error("expected `cpu` or `gpu`")),
    }
}

fn libraries(cursor: &mut Cursor<'_>) -> Result<Vec<MathLibrary>, SyntaxError> {
    let mut named = Vec::new();
    while cursor.eat_word("library") {
        let name = cursor.string()?;
        let known = MathLibrary::ALL.into_iter().find(|library| library.name() == name);
        named.push(known.ok_or_else(|| cursor.error("there is no such library"))?);
    }
    Ok(named)
}

pub(super) fn one(cursor: &mut Cursor<'_>) -> Result<Expr, SyntaxError> {
    match <[Expr; 1]>::try_from(cursor.expressions()?) {
        Ok([expr]) => Ok(expr),
        Err(_) => Err(cursor.error("expected one expression")),
    }
}

pub(super) fn pair(cursor: &mut Cursor<'_>) -> Result<[Expr; 2], SyntaxError> {
    cursor.expressions()?.try_into().map_err(|_| cursor.error("expected two expressions"))
}

pub(super) fn buffer(cursor: &mut Cursor<'_>, buffers: &Buffers) -> Result<BufferId, SyntaxError> {
    let id = BufferId::from_u32(cursor.reference('b')?);
    if buffers.is_valid(id) { Ok(id) } else { Err(cursor.error("there is no such buffer")) }
}

fn choice(cursor: &mut Cursor<'_>, buffers: &Buffers) -> Result<Selection, SyntaxError> {
    cursor.expect_word("choose")?;
    let algorithm = algorithm(cursor)?;
    let mut packed = Vec::new();
    while cursor.eat_word("pack") {
        let buffer = buffer(cursor, buffers)?;
        packed.push(PackedOperand { buffer, form: form(cursor)? });
    }
    let mut scratch = Scratch::default();
    if cursor.eat_word("scratch") {
        let [shared, worker] = pair(cursor)?;
        let units = if cursor.eat_word("units") { Some(cursor.expression()?) } else { None };
        scratch = Scratch { shared, worker, units };
    }
    Ok(Selection { algorithm, packed, scratch })
}

pub(super) fn algorithm(cursor: &mut Cursor<'_>) -> Result<&'static Algorithm, SyntaxError> {
    let word = cursor.word()?;
    Algorithm::named(word).ok_or_else(|| cursor.error(format!("`{word}` is not an algorithm")))
}

pub(super) fn split(cursor: &mut Cursor<'_>) -> Result<Split, SyntaxError> {
    Ok(match cursor.word()? {
        "serial" => Split::Serial,
        "axes" => Split::Axes(cursor.position()?),
        "chunks" => Split::Chunks(cursor.number()?),
        "rows" => Split::RowsFrom(cursor.number()?),
        "template" => Split::Template,
        _ => return Err(cursor.error("expected how work is split")),
    })
}

pub(super) fn lanes(cursor: &mut Cursor<'_>) -> Result<Lanes, SyntaxError> {
    cursor.expect_word("lanes")?;
    match cursor.word()? {
        "one" => Ok(Lanes::One),
        "inner" => Ok(Lanes::Inner),
        "outer" => Ok(Lanes::Outer),
        _ => Err(cursor.error("expected `one`, `inner` or `outer`")),
    }
}

pub(super) fn math_path(cursor: &mut Cursor<'_>) -> Result<MathPath, SyntaxError> {
    one_of(cursor, "by", MathPath::ALL.map(|by| (by.row().word, by)))
}

fn form(cursor: &mut Cursor<'_>) -> Result<Form, SyntaxError> {
    let word = cursor.word()?;
    let items = cursor.bracketed()?;
    let sizes: Result<Vec<usize>, _> = items.into_iter().map(str::parse).collect();
    let sizes = sizes.map_err(|_| cursor.error("expected sizes"))?;
    let packing = match (word, sizes.as_slice()) {
        ("plain", []) => Packing::Plain,
        ("product" | "narrow_product", &[offset, row_stride, col_stride, k, n]) => {
            let narrow = word == "narrow_product";
            Packing::Product { offset, row_stride, col_stride, k, n, narrow }
        }
        ("product_groups", &[k, n, rows, bits]) => Packing::ProductGroups { k, n, rows, bits },
        ("group_tiles", &[k, n, rows, bits, scale]) => {
            Packing::GroupTiles(GroupTiles { k, n, rows, bits, scale })
        }
        ("conv", &[groups, channels, k]) => Packing::Conv { groups, channels, k },
        ("conv_transposed", &[groups, in_channels, rows]) => {
            Packing::ConvTransposed { groups, in_channels, rows }
        }
        ("by_tap", &[channels, in_channels, taps]) => Packing::ByTap { channels, in_channels, taps },
        ("tap_panels", &[groups, channels, in_channels, taps]) => {
            Packing::TapPanels { groups, channels, in_channels, taps }
        }
        ("product_words", &[offset, row_stride, col_stride, k, n]) => {
            Packing::ProductWords { offset, row_stride, col_stride, k, n }
        }
        ("tap_words", &[groups, channels, in_channels, taps]) => {
            Packing::TapWords { groups, channels, in_channels, taps }
        }
        (word, sizes) => {
            let expansion = Expansion::from_words(word, sizes).map(Form::Expanded);
            return expansion.ok_or_else(|| cursor.error("expected a form and its sizes"));
        }
    };
    Ok(packing.into())
}

/// Blocks that share a tile: one where nothing is said.
pub(super) fn blocks(cursor: &mut Cursor<'_>) -> Result<i64, SyntaxError> {
    if cursor.eat_word("blocks") { cursor.number() } else { Ok(1) }
}

fn grain(cursor: &mut Cursor<'_>) -> Result<Grain, SyntaxError> {
    cursor.expect_word("grain")?;
    let [enough, unit] = pair(cursor)?;
    let enough = enough.as_int().ok_or_else(|| cursor.error("expected a number"))?;
    Ok(Grain { enough, unit })
}

fn mapping(cursor: &mut Cursor<'_>) -> Result<Mapping, SyntaxError> {
    cursor.expect_word("map")?;
    if cursor.eat_word("split") {
        let (split, lanes) = (split(cursor)?, lanes(cursor)?);
        let grain = grain(cursor)?;
        let block = if cursor.eat_word("block") { block(cursor)? } else { Block::Typical };
        let rows = if cursor.eat_word("then") { Some(self::grain(cursor)?) } else { None };
        return Ok(Mapping::Cpu(CpuMapping { split, lanes, grain, block, rows }));
    }
    if cursor.eat_word("template") {
        let (threads, rows) = (field(cursor, "threads")?, field(cursor, "rows")?);
        return Ok(Mapping::Gpu(GpuMapping::Template { threads, rows, index: index_width(cursor)? }));
    }
    if cursor.eat_word("tile") {
        let [Some(rows), Some(columns)] = pair(cursor)?.map(|size| size.as_int()) else {
            return Err(cursor.error("expected two numbers"));
        };
        let by = math_path(cursor)?;
        let threads = field(cursor, "threads")?;
        let producer_threads = if cursor.eat_word("producers") { cursor.number()? } else { 0 };
        let blocks = blocks(cursor)?;
        let heads = if cursor.eat_word("heads") { cursor.number()? } else { 1 };
        let (shared, index) = (field(cursor, "shared")?, index_width(cursor)?);
        let tile = Tile { by, rows, columns, threads, producer_threads, blocks, heads, shared, index };
        return Ok(Mapping::Gpu(GpuMapping::Tiles(tile)));
    }
    if cursor.eat_word("scatter") {
        let (by, lanes) = (meeting(cursor)?, field(cursor, "lanes")?);
        let (words, index) = (width(cursor, "words")?, index_width(cursor)?);
        return Ok(Mapping::Gpu(GpuMapping::Scatter(Scattering { by, lanes, words, index })));
    }
    let (size, blocks) = (field(cursor, "team")?, blocks(cursor)?);
    let places = field(cursor, "places")?;
    let across = one_of(cursor, "adjacent", [("places", true), ("members", false)])?;
    let along = one_of(cursor, "along", [("outer", Along::Outer), ("inner", Along::Inner)])?;
    let lanes = field(cursor, "lanes")?;
    let turned = if cursor.eat_word("turned") { Some(cursor.position()?) } else { None };
    let rows = rows(cursor)?;
    cursor.expect_word("order")?;
    let in_order: Result<Vec<usize>, _> = cursor.bracketed()?.into_iter().map(str::parse).collect();
    let in_order = in_order.map_err(|_| cursor.error("expected axes by number"))?;
    let index = index_width(cursor)?;
    let teams = Teams { size, blocks, places, across, along, lanes, turned, index, rows, in_order };
    Ok(Mapping::Gpu(GpuMapping::Teams(teams)))
}

pub(super) fn rows(cursor: &mut Cursor<'_>) -> Result<Rows, SyntaxError> {
    let kept = [("shared", Rows::Shared), ("registers", Rows::Registers), ("scratch", Rows::Scratch)];
    one_of(cursor, "rows", kept)
}

pub(super) fn block(cursor: &mut Cursor<'_>) -> Result<Block, SyntaxError> {
    match cursor.word()? {
        "rows" => Ok(Block::Rows(cursor.number()?)),
        "weights" => Ok(Block::WeightsOnce),
        "pixels" => Ok(Block::PixelsOnce),
        _ => Err(cursor.error("expected `rows`, `weights` or `pixels`")),
    }
}

pub(super) fn meeting(cursor: &mut Cursor<'_>) -> Result<Meeting, SyntaxError> {
    match cursor.word()? {
        "atomic" => Ok(Meeting::Atomics),
        "bins" => Ok(Meeting::Bins(cursor.number()?)),
        "fixed" => Ok(Meeting::Fixed),
        "columns" => Ok(Meeting::Columns),
        "last" => Ok(Meeting::Last),
        "ranked" => Ok(Meeting::Ranked),
        "sorted" => Ok(Meeting::Sorted),
        _ => Err(cursor.error("expected `atomic`, `bins`, `fixed`, `last`, `ranked` or `sorted`")),
    }
}

fn index_width(cursor: &mut Cursor<'_>) -> Result<IndexWidth, SyntaxError> {
    width(cursor, "index")
}

fn width(cursor: &mut Cursor<'_>, name: &str) -> Result<IndexWidth, SyntaxError> {
    match field(cursor, name)? {
        32 => Ok(IndexWidth::Narrow),
        64 => Ok(IndexWidth::Wide),
        _ => Err(cursor.error("expected 32 or 64")),
    }
}

fn one_of<T, const N: usize>(
    cursor: &mut Cursor<'_>,
    name: &str,
    words: [(&str, T); N],
) -> Result<T, SyntaxError> {
    cursor.expect_word(name)?;
    let word = cursor.word()?;
    let known = words.each_ref().map(|(own, _)| format!("`{own}`")).join(" or ");
    let found = words.into_iter().find(|(own, _)| *own == word);
    found.map(|(_, value)| value).ok_or_else(|| cursor.error(format!("expected {known}")))
}

pub(super) fn field(cursor: &mut Cursor<'_>, name: &str) -> Result<i64, SyntaxError> {
    cursor.expect_word(name)?;
    cursor.number()
}
