//! Prints schedules.

use super::launch;
use crate::graph::text::{Detail, bracketed, quoted};
use crate::kernels::mapping::{
    Along, Block, CpuMapping, GpuMapping, Grain, IndexWidth, Lanes, Mapping, Meeting, Rows, Scattering,
    Split, Teams, Tile,
};
use crate::kernels::{Form, GroupTiles, Packing, Scratch, Selection};
use crate::loops;
use crate::schedule::Schedule;
use crate::schedule::memory::MemoryPlan;
use crate::target::{MathLibrary, Target, Tf32};
use std::fmt::Write;

/// The whole schedule; [`super::parse`] gives it back.
pub fn print(schedule: &Schedule) -> String {
    printed(schedule, Detail::Full)
}

/// For people: the data of larger constants is left out, so it cannot be parsed again.
pub fn print_short(schedule: &Schedule) -> String {
    printed(schedule, Detail::Short)
}

fn printed(schedule: &Schedule, detail: Detail) -> String {
    let mut text = match &schedule.target {
        Target::Cpu(cpu) => {
            let levels: String = cpu.levels.iter().map(|level| format!(" {}", quoted(&level.name))).collect();
            format!("schedule cpu{levels}{} {{\n", libraries(&cpu.libraries))
        }
        Target::Gpu(gpu) => {
            let Tf32 { matmul, conv } = gpu.tf32;
            let allowed = [(matmul, " tf32-matmul"), (conv, " tf32-conv")];
            let allowed: String = allowed.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
            let libraries = libraries(gpu.library.as_slice());
            format!("schedule gpu {}{allowed}{libraries} {{\n", quoted(&gpu.architecture))
        }
    };
    let decisions = |id| {
        let mut lines = choice_lines(&schedule.choices[id]);
        lines.push(mapping_line(&schedule.mappings[id]));
        lines.push(launch::call_line(&schedule.calls[id]));
        lines.extend(schedule.launches[id].iter().flat_map(launch::print));
        lines
    };
    text.push_str(&loops::text::print_with(&schedule.program, detail, 1, &decisions));
    let MemoryPlan { arena_bytes, total_bytes, .. } = &schedule.memory;
    let total = if total_bytes == arena_bytes { String::new() } else { format!(" total [{total_bytes}]") };
    let _ = writeln!(text, "  arena [{arena_bytes}]{total}");
    for (buffer, offset) in &schedule.memory.offsets {
        let _ = writeln!(text, "  place {buffer} [{offset}]");
    }
    for (buffer, late) in &schedule.memory.late {
        let _ = writeln!(text, "  late {buffer} {late}");
    }
    for (kernel, late) in &schedule.memory.late_scratch {
        let _ = writeln!(text, "  late-scratch {kernel} {late}");
    }
    text.push_str("}\n");
    text
}

/// The libraries that products may be left to.
fn libraries(named: &[MathLibrary]) -> String {
    named.iter().map(|library| format!(" library {}", quoted(library.name()))).collect()
}

pub(in crate::schedule) fn choice_lines(choice: &Selection) -> Vec<String> {
    let mut lines = vec![format!("choose {}", choice.algorithm.word)];
    for packed in &choice.packed {
        let (form, sizes) = form_words(&packed.form);
        lines.push(format!("pack {} {form} {}", packed.buffer, bracketed(&sizes)));
    }
    if !choice.scratch.is_empty() {
        let Scratch { shared, worker, units } = &choice.scratch;
        let units = units.as_ref().map_or_else(String::new, |units| format!(" units [{units}]"));
        lines.push(format!("scratch [{shared}, {worker}]{units}"));
    }
    lines
}

/// The word for a form in which a kernel reads a constant, and its sizes.
fn form_words(form: &Form) -> (&'static str, Vec<usize>) {
    match *form {
        Form::Packed(Packing::Plain) => ("plain", vec![]),
        Form::Packed(Packing::Product { offset, row_stride, col_stride, k, n, narrow }) => {
            (if narrow { "narrow_product" } else { "product" }, vec![offset, row_stride, col_stride, k, n])
        }
        Form::Packed(Packing::ProductGroups { k, n, rows, bits }) => {
            ("product_groups", vec![k, n, rows, bits])
        }
        Form::Packed(Packing::GroupTiles(GroupTiles { k, n, rows, bits, scale })) => {
            ("group_tiles", vec![k, n, rows, bits, scale])
        }
        Form::Packed(Packing::Conv { groups, channels, k }) => ("conv", vec![groups, channels, k]),
        Form::Packed(Packing::ConvTransposed { groups, in_channels, rows }) => {
            ("conv_transposed", vec![groups, in_channels, rows])
        }
        Form::Packed(Packing::ByTap { channels, in_channels, taps }) => {
            ("by_tap", vec![channels, in_channels, taps])
        }
        Form::Packed(Packing::TapPanels { groups, channels, in_channels, taps }) => {
            ("tap_panels", vec![groups, channels, in_channels, taps])
        }
        Form::Packed(Packing::ProductWords { offset, row_stride, col_stride, k, n }) => {
            ("product_words", vec![offset, row_stride, col_stride, k, n])
        }
        Form::Packed(Packing::TapWords { groups, channels, in_channels, taps }) => {
            ("tap_words", vec![groups, channels, in_channels, taps])
        }
        Form::Expanded(ref expansion) => expansion.words(),
    }
}

pub(super) fn split_text(split: Split) -> String {
    match split {
        Split::Serial => "serial".to_owned(),
        Split::Axes(count) => format!("axes {count}"),
        Split::Chunks(elements) => format!("chunks {elements}"),
        Split::RowsFrom(rows) => format!("rows {rows}"),
        Split::Template => "template".to_owned(),
    }
}

pub(super) fn lanes_text(lanes: Lanes) -> &'static str {
    match lanes {
        Lanes::One => "one",
        Lanes::Inner => "inner",
        Lanes::Outer => "outer",
    }
}

pub(super) fn block_text(block: Block) -> String {
    match block {
        Block::Typical => String::new(),
        Block::Rows(rows) => format!(" block rows {rows}"),
        Block::WeightsOnce => " block weights".to_owned(),
        Block::PixelsOnce => " block pixels".to_owned(),
    }
}

/// Blocks that share a tile, where there are several.
pub(super) fn blocks_text(blocks: i64) -> String {
    if blocks == 1 { String::new() } else { format!(" blocks {blocks}") }
}

pub(in crate::schedule) fn mapping_line(mapping: &Mapping) -> String {
    match mapping {
        Mapping::Cpu(CpuMapping { split, lanes, grain, block, rows }) => {
            let (split, lanes, block) = (split_text(*split), lanes_text(*lanes), block_text(*block));
            let rows = rows.as_ref().map_or(String::new(), |rows| format!(" then {}", grain_text(rows)));
            format!("map split {split} lanes {lanes} {}{block}{rows}", grain_text(grain))
        }
        Mapping::Gpu(GpuMapping::Template { threads, rows, index }) => {
            format!("map template threads {threads} rows {rows} index {}", bits(*index))
        }
        Mapping::Gpu(GpuMapping::Tiles(Tile {
            by,
            rows,
            columns,
            threads,
            blocks,
            producer_threads,
            heads,
            shared,
            index,
        })) => {
            let (by, blocks) = (by.row().word, blocks_text(*blocks));
            let producer_threads =
                if *producer_threads == 0 { String::new() } else { format!(" producers {producer_threads}") };
            let heads = if *heads == 1 { String::new() } else { format!(" heads {heads}") };
            format!(
                "map tile [{rows}, {columns}] by {by} threads {threads}{producer_threads}{blocks}{heads} shared {shared} index {}",
                bits(*index)
            )
        }
        Mapping::Gpu(GpuMapping::Scatter(Scattering { by, lanes, words, index })) => {
            let (by, words) = (meeting_text(*by), bits(*words));
            format!("map scatter {by} lanes {lanes} words {words} index {}", bits(*index))
        }
        Mapping::Gpu(GpuMapping::Teams(teams)) => {
            let Teams { size, blocks, places, across, along, lanes, turned, index, rows, in_order } = teams;
            let blocks = blocks_text(*blocks);
            let turned = turned.map_or_else(String::new, |axis| format!(" turned {axis}"));
            let side = if *across { "places" } else { "members" };
            let along = match along {
                Along::Outer => "outer",
                Along::Inner => "inner",
            };
            let rows = rows_text(*rows);
            format!(
                "map team {size}{blocks} places {places} adjacent {side} along {along} lanes {lanes}{turned} rows {rows} order {} index {}",
                bracketed(in_order),
                bits(*index)
            )
        }
    }
}

pub(super) fn meeting_text(by: Meeting) -> String {
    match by {
        Meeting::Atomics => "atomic".to_owned(),
        Meeting::Bins(slots) => format!("bins {slots}"),
        Meeting::Fixed => "fixed".to_owned(),
        Meeting::Columns => "columns".to_owned(),
        Meeting::Last => "last".to_owned(),
        Meeting::Ranked => "ranked".to_owned(),
        Meeting::Sorted => "sorted".to_owned(),
    }
}

pub(super) fn rows_text(rows: Rows) -> &'static str {
    match rows {
        Rows::Shared => "shared",
        Rows::Registers => "registers",
        Rows::Scratch => "scratch",
    }
}

fn grain_text(grain: &Grain) -> String {
    format!("grain [{}, {}]", grain.enough, grain.unit)
}

fn bits(index: IndexWidth) -> u32 {
    match index {
        IndexWidth::Narrow => 32,
        IndexWidth::Wide => 64,
    }
}
