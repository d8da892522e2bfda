//! `bench --html`: where the time goes, kernel by kernel, against what the machine reaches, and on which threads.

use std::path::Path;

use serde_json::Value;

use super::Report;
use super::profile::{Limit, Profile, SLOW};
use super::trace::Trace;
use crate::failure::Failure;
use crate::page::chart::{self, Point, Span};
use crate::page::{Cell, Page, Table, number};

/// Writes the page.
pub(super) fn write(path: &Path, report: &Report<'_>, trace: &Trace) -> Result<(), Failure> {
    let json = report.json();
    html(report, trace, &json).write(path, &json)
}

fn html(report: &Report<'_>, trace: &Trace, json: &Value) -> Page {
    let title = format!("{}: latency", report.name);
    let lead = format!("{} runs on {} thread(s), {}.", report.micros.len(), report.threads, report.level);
    let mut page = Page::new(&title, &lead);
    page.fact("median", &format!("{} µs", number(report.median(), 2)));
    page.fact("fastest", &format!("{} µs", number(report.micros[0], 2)));
    page.fact("95th percentile", &format!("{} µs", number(report.percentile(0.95), 2)));
    page.fact("runs a second", &number(1e6 / report.median(), 0));
    page.fact("library", &format!("{} bytes", number(report.library_bytes as f64, 0)));
    page.fact("workspace", &format!("{} bytes", number(report.workspace_bytes as f64, 0)));
    page.fact("compiled in", &format!("{} ms", number(report.compile_ms as f64, 0)));
    if let Some(change) = &report.change {
        page.fact("against before", &change.text());
    }
    let Some(profile) = &report.profile else { return page };
    roofline(&mut page, profile, json);
    timeline(&mut page, profile, trace);
    kernels(&mut page, profile);
    page
}

fn kernels(page: &mut Page, profile: &Profile<'_>) {
    let columns = [
        ("kernel", false),
        ("µs", true),
        ("share", true),
        (profile.limit_name(), true),
        ("GB/s", true),
        ("GFLOP/s", true),
        ("KB", true),
        ("MFLOP", true),
        ("times", true),
        ("line", false),
        ("module", false),
    ];
    let mut table = Table::new("Time of each kernel", &columns);
    for row in profile.sorted() {
        let part = profile.part(row);
        table.row(&[
            Cell::Code(row.kernel.name.clone()),
            Cell::Number(Some(row.micros), 2),
            Cell::Part(Some(profile.share(row)), false),
            Cell::Part(part, part.is_some_and(|part| part < SLOW)),
            Cell::Number(row.gb_per_s(), 2),
            Cell::Number(row.gflop_per_s(), 2),
            Cell::Number(row.work.map(|work| (work.read + work.written) / 1e3), 1),
            Cell::Number(row.work.map(|work| work.operations / 1e6), 3),
            Cell::Number(Some(row.calls as f64), 0),
            Cell::Code(row.kernel.source.first().cloned().unwrap_or_default()),
            Cell::Text(row.kernel.module.clone()),
        ]);
    }
    let text = "Medians over all runs, longest first. Red: below a quarter of what the machine reaches.";
    page.section("Kernels", text, &table.html());
}

fn roofline(page: &mut Page, profile: &Profile<'_>, json: &Value) {
    let point = |row: &super::profile::Row<'_>| {
        let work = row.work?;
        let (bytes, part) = (work.read + work.written, profile.part(row));
        let percent = part.map_or(String::new(), |part| format!(", {:.0} % of the limit", part * 100.0));
        let label = format!(
            "{}: {:.2} µs, {:.2} GFLOP/s, {:.2} operations a byte{percent}",
            row.kernel.name,
            row.micros,
            row.gflop_per_s()?,
            work.operations / bytes.max(1.0)
        );
        Some(Point {
            per_byte: work.operations / bytes.max(1.0),
            rate: row.gflop_per_s()?,
            share: profile.share(row),
            label,
            is_bad: part.is_some_and(|part| part < SLOW),
        })
    };
    let points: Vec<Point> = profile.sorted().into_iter().filter_map(point).collect();
    let limits = match profile.limit() {
        Some(Limit::Machine(_)) => &json["profile"]["limits"],
        // Of a device only the rate of a copy is known.
        Some(Limit::Copy(_)) | None => return,
    };
    let Some(peak) = limits["gflop_per_s"].as_f64().filter(|peak| *peak > 0.0) else { return };
    let levels = limits["levels"].as_array().into_iter().flatten().filter_map(|level| {
        let rate = level["gb_per_s"].as_f64().filter(|rate| *rate > 0.0)?;
        Some((level["name"].as_str()?.to_owned(), rate))
    });
    let levels: Vec<(String, f64)> = levels.collect();
    let chart = chart::roofline("What kernels reach below what the machine does", &points, peak, &levels);
    let mut text = "Each kernel by what it computes for each byte, and how fast; its size is its share of the time. The lines are \
                    what the machine was measured to compute, and to read from each cache and from memory. Kernels that compute \
                    nothing are not shown."
        .to_owned();
    if profile.is_doubtful() {
        text.push_str(" Kernels are above them here, so the machine reaches more: measure it again with `cargo aoti doctor --measure`.");
    }
    let legend = chart::legend_of_bad("a quarter of the limit or more", "less");
    page.section("Roofline", &text, &(chart + &legend));
}

fn timeline(page: &mut Page, profile: &Profile<'_>, trace: &Trace) {
    let mut rows = vec!["kernels".to_owned()];
    rows.extend((0..trace.threads).map(|thread| format!("thread {thread}")));
    let kernels = profile.kernels();
    let spans = trace.spans.iter().filter_map(|span| {
        let kernel = kernels.get(span.kernel)?;
        Some(Span {
            row: span.thread.map_or(0, |thread| thread + 1),
            from: span.from,
            to: span.to,
            colour: span.kernel,
            label: format!("{}: {:.2} µs, from {:.2} µs", kernel.name, span.to - span.from, span.from),
            name: if span.thread.is_none() { kernel.name.clone() } else { String::new() },
        })
    });
    let spans: Vec<Span> = spans.collect();
    let chart = chart::timeline("One run, kernel by kernel", &rows, &spans, "µs");
    let text = "One run of middle length. Below the kernels, what each thread did of their loops; what is blank there was not \
                shared, or waited.";
    page.section("Timeline", text, &chart);
}
