//! `inspect --html`: the kernels that a model becomes, what they pass on, where temporaries lie and when, and what is checked.

use std::collections::BTreeMap;

use aoti_compiler::codegen::interface::{Interface, ValueInterface};
use aoti_compiler::compile::{BufferView, KernelView, Overview, Place};
use serde_json::{Value, json};

use super::describe;
use crate::page::chart::{self, Block};
use crate::page::graph::{self, Node};
use crate::page::{Cell, Page, Table, number};

/// Kernels that are drawn: nobody reads a picture of more.
const MOST: usize = 400;

/// The page about a model.
pub(super) fn page(interface: &Interface, overview: &Overview) -> Page {
    let title = format!("{}: what it is compiled to", interface.name);
    let sizes: Vec<String> = overview.sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    let at = if sizes.is_empty() {
        String::new()
    } else {
        format!(" Bytes and work are those at {}.", sizes.join(", "))
    };
    let lead = format!("{} kernels in the order in which they run.{at}", overview.kernels.len());
    let mut page = Page::new(&title, &lead);
    page.fact("kernels", &number(overview.kernels.len() as f64, 0));
    page.fact("weights", &bytes_text(interface.weights_bytes as f64));
    if let Some(bytes) = overview.arena_bytes {
        page.fact("temporaries", &bytes_text(bytes as f64));
    }
    let works: Option<Vec<_>> = overview.kernels.iter().map(|kernel| kernel.work).collect();
    if let Some(works) = works {
        let operations: f64 = works.iter().map(|work| work.operations).sum();
        page.fact("operations", &format!("{} M", number(operations / 1e6, 2)));
    }
    signature(&mut page, interface);
    kernel_graph(&mut page, overview);
    memory(&mut page, overview);
    kernels(&mut page, overview);
    guards(&mut page, overview);
    page
}

fn signature(page: &mut Page, interface: &Interface) {
    let mut table = Table::new("Inputs, outputs and states", &[("kind", false), ("value", false)]);
    let groups: [(&str, &[ValueInterface]); 3] =
        [("input", &interface.inputs), ("output", &interface.outputs), ("state", &interface.states)];
    for (kind, values) in groups {
        for value in values {
            table.row(&[Cell::Text(kind.to_owned()), Cell::Code(describe(value))]);
        }
    }
    page.section("Interface", "", &table.html());
}

/// A colour for each kind of kernel, with the kinds there are.
fn colours(kernels: &[KernelView]) -> BTreeMap<&'static str, usize> {
    let mut colours = BTreeMap::new();
    for kernel in kernels {
        let next = colours.len();
        colours.entry(kernel.kind).or_insert(next);
    }
    colours
}

fn kernel_graph(page: &mut Page, overview: &Overview) {
    let (mut last_writer, colours) = (BTreeMap::new(), colours(&overview.kernels));
    let mut nodes = Vec::new();
    for (position, kernel) in overview.kernels.iter().take(MOST).enumerate() {
        let mut after: Vec<usize> =
            kernel.reads.iter().filter_map(|buffer| last_writer.get(buffer).copied()).collect();
        after.sort_unstable();
        after.dedup();
        last_writer.extend(kernel.writes.iter().map(|buffer| (*buffer, position)));
        nodes.push(Node {
            name: kernel.name.clone(),
            note: if kernel.module.is_empty() { calls(kernel) } else { kernel.module.clone() },
            label: format!(
                "{}\n{}\n{}\n{}",
                kernel.name,
                kernel.kind,
                calls(kernel),
                kernel.source.join("\n")
            ),
            colour: colours[kernel.kind],
            after,
        });
    }
    let mut text = "A box is a kernel: calls of the program that were fused. Lines are values that one writes and another reads; \
                    point at a box for its calls and its lines of Python."
        .to_owned();
    if overview.kernels.len() > MOST {
        text.push_str(&format!(" The first {MOST} of {} are drawn.", overview.kernels.len()));
    }
    let legend: Vec<(usize, &str)> = colours.iter().map(|(kind, colour)| (*colour, *kind)).collect();
    let drawn = graph::draw("Kernels and what they pass on", &nodes);
    page.section("Kernels and values", &text, &(drawn + &chart::legend(&legend)));
}

/// The operators that a kernel computes.
fn calls(kernel: &KernelView) -> String {
    let name = |call: &String| {
        let operator = call.split(" of ").next().unwrap_or_default();
        operator.strip_prefix("aten.").unwrap_or(operator).trim_end_matches(".default").to_owned()
    };
    kernel.calls.iter().map(name).collect::<Vec<_>>().join(" + ")
}

fn memory(page: &mut Page, overview: &Overview) {
    let block = |buffer: &BufferView| {
        let (Some(bytes), Some(offset), Some((from, to))) = (buffer.bytes, buffer.offset, buffer.life) else {
            return None;
        };
        let name = if buffer.name.is_empty() { "temporary" } else { &buffer.name };
        let label = format!(
            "{name}: {}[{}], {} at {offset}, kernels {from} to {to}",
            buffer.dtype,
            buffer.sizes.join(", "),
            bytes_text(bytes as f64)
        );
        Some(Block {
            from: from as f64,
            to: to as f64 + 1.0,
            low: offset as f64,
            high: (offset + bytes) as f64,
            label,
            name: name.to_owned(),
        })
    };
    let in_arena = overview.buffers.iter().filter(|buffer| buffer.place == Place::Arena);
    let blocks: Vec<Block> = in_arena.filter_map(block).collect();
    let all: f64 = blocks.iter().map(|block| block.high - block.low).sum();
    let (Some(arena), false) = (overview.arena_bytes, blocks.is_empty()) else { return };
    let text = format!(
        "Temporaries share one arena of {}; each for itself would take {}. Across: from the kernel that writes a buffer to the last \
         that reads it. Upwards: where in the arena it lies.",
        bytes_text(arena as f64),
        bytes_text(all)
    );
    let extent = (overview.kernels.len() as f64, arena as f64);
    let drawn = chart::blocks("Where temporaries lie, and when", &blocks, extent, &bytes_text);
    page.section("Memory over time", &text, &drawn);
}

fn kernels(page: &mut Page, overview: &Overview) {
    let columns = [
        ("", true),
        ("kernel", false),
        ("kind", false),
        ("KB read", true),
        ("KB written", true),
        ("MFLOP", true),
        ("calls", false),
        ("line", false),
    ];
    let mut table = Table::new("Kernels in the order in which they run", &columns);
    for (position, kernel) in overview.kernels.iter().enumerate() {
        table.row(&[
            Cell::Number(Some(position as f64), 0),
            Cell::Code(kernel.name.clone()),
            Cell::Text(kernel.kind.to_owned()),
            Cell::Number(kernel.work.map(|work| work.read / 1e3), 1),
            Cell::Number(kernel.work.map(|work| work.written / 1e3), 1),
            Cell::Number(kernel.work.map(|work| work.operations / 1e6), 3),
            Cell::Code(calls(kernel)),
            Cell::Code(kernel.source.first().cloned().unwrap_or_default()),
        ]);
    }
    page.section("Kernels", "", &table.html());
}

fn guards(page: &mut Page, overview: &Overview) {
    let mut table = Table::new("Conditions on sizes", &[("must hold", false)]);
    overview.guards.iter().for_each(|guard| table.row(&[Cell::Code(guard.clone())]));
    let text = match overview.guards.len() {
        0 => "Nothing is checked of sizes beyond the ranges of the dimensions.",
        _ => "Checked when a run begins, beside the ranges of the dimensions.",
    };
    let markup = if overview.guards.is_empty() { String::new() } else { table.html() };
    page.section("Guards", text, &markup);
}

/// Bytes for people.
fn bytes_text(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes:.0} B"), |(size, name)| format!("{:.1} {name}", bytes / size))
}

/// The same for programs.
pub(super) fn json(overview: &Overview) -> Value {
    let kernel = |kernel: &KernelView| {
        json!({
            "name": kernel.name, "kind": kernel.kind, "calls": kernel.calls, "source": kernel.source,
            "module": kernel.module, "reads": kernel.reads, "writes": kernel.writes,
            "bytes_read": kernel.work.map(|work| work.read), "bytes_written": kernel.work.map(|work| work.written),
            "flops": kernel.work.map(|work| work.operations),
        })
    };
    let buffer = |buffer: &BufferView| {
        json!({
            "name": buffer.name, "dtype": buffer.dtype, "sizes": buffer.sizes, "place": buffer.place.name(),
            "bytes": buffer.bytes, "offset": buffer.offset, "first": buffer.life.map(|(first, _)| first),
            "last": buffer.life.map(|(_, last)| last),
        })
    };
    json!({
        "kernels": overview.kernels.iter().map(kernel).collect::<Vec<_>>(),
        "buffers": overview.buffers.iter().map(buffer).collect::<Vec<_>>(),
        "arena_bytes": overview.arena_bytes, "guards": overview.guards,
        "dims": overview.sizes.iter().map(|(name, size)| (name.clone(), json!(size))).collect::<serde_json::Map<_, _>>(),
    })
}
