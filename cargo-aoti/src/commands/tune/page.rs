//! `tune --html`: what was measured of each kernel, and what changed. Made of the objects that `--format json` prints.

use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::page::{Cell, Page, Table, number};

/// Ways of a kernel that are shown.
const SHOWN: usize = 8;

/// Writes the page about these objects.
pub(super) fn write(path: &Path, objects: &[Value]) -> Result<(), Failure> {
    page(objects).write(path, &json!(objects))
}

fn of_reason<'a>(objects: &'a [Value], reason: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["reason"] == reason)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn page(objects: &[Value]) -> Page {
    let kernels: Vec<&Value> = of_reason(objects, "aoti-tuning").collect();
    let mut page =
        Page::new("Tuning", &format!("{} measurements of kernels and of what decides them.", kernels.len()));
    let is_changed = |kernel: &&&Value| kernel["choice"] != kernel["candidates"][0]["choice"];
    page.fact("measured", &kernels.len().to_string());
    page.fact("not as predicted", &kernels.iter().filter(is_changed).count().to_string());
    wholes(&mut page, objects);
    winners(&mut page, &kernels);
    candidates(&mut page, &kernels);
    page
}

/// Whole runs before and after.
fn wholes(page: &mut Page, objects: &[Value]) {
    let columns = [
        ("model", false),
        ("of", false),
        ("machine", false),
        ("threads", true),
        ("µs before", true),
        ("µs after", true),
        ("change", true),
    ];
    let mut table = Table::new("Whole runs, without records and with them", &columns);
    for one in of_reason(objects, "aoti-tuned") {
        let (before, after) = (one["whole"]["default_us"].as_f64(), one["whole"]["tuned_us"].as_f64());
        let change = before.zip(after).map(|(before, after)| (after / before - 1.0) * 100.0);
        table.row(&[
            Cell::Text(text(&one["model"])),
            Cell::Text(text(&one["of"])),
            Cell::Code(text(&one["machine"])),
            Cell::Number(one["threads"].as_f64(), 0),
            Cell::Number(before, 2),
            Cell::Number(after, 2),
            Cell::Text(change.map_or("–".to_owned(), |change| format!("{change:+.1} %"))),
        ]);
    }
    let about = "Nothing is recorded with which the whole is slower. A dash: nothing but the defaults won, or no run counted.";
    page.section("Whole runs", about, &table.html());
}

/// The candidates that were timed, fastest first.
fn timed(kernel: &Value) -> Vec<(f64, &Value)> {
    let candidates = kernel["candidates"].as_array().into_iter().flatten();
    let mut timed: Vec<(f64, &Value)> =
        candidates.filter_map(|way| Some((way["us"].as_f64()?, way))).collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    timed
}

fn winners(page: &mut Page, kernels: &[&Value]) {
    let columns = [
        ("kernel", false),
        ("µs by default", true),
        ("µs now", true),
        ("of the default", true),
        ("tried", true),
        ("choice", false),
    ];
    let mut table = Table::new("What won for each kernel", &columns);
    for kernel in kernels {
        let default = kernel["candidates"][0]["us"].as_f64();
        let timed = timed(kernel);
        let now = timed.iter().find(|(_, way)| way["choice"] == kernel["choice"]).map(|(us, _)| *us);
        table.row(&[
            Cell::Code(text(&kernel["kernel"])),
            Cell::Number(default, 2),
            Cell::Number(now, 2),
            Cell::Part(default.zip(now).map(|(default, now)| now / default), false),
            Cell::Number(Some(timed.len() as f64), 0),
            Cell::Code(text(&kernel["choice"])),
        ]);
    }
    page.section("Winners", "", &table.html());
}

fn candidates(page: &mut Page, kernels: &[&Value]) {
    let columns = [
        ("kernel", false),
        ("µs", true),
        ("±", true),
        ("of the slowest", true),
        ("predicted", true),
        ("choice", false),
    ];
    let mut table = Table::new("The fastest ways of each kernel", &columns);
    for kernel in kernels {
        let timed = timed(kernel);
        let slowest = timed.last().map_or(1.0, |(us, _)| *us);
        for (us, way) in timed.iter().take(SHOWN) {
            table.row(&[
                Cell::Code(text(&kernel["kernel"])),
                Cell::Number(Some(*us), 2),
                Cell::Number(way["spread_us"].as_f64(), 2),
                Cell::Part(Some(us / slowest.max(1e-9)), false),
                Cell::Number(way["predicted"].as_f64(), 2),
                Cell::Code(text(&way["choice"])),
            ]);
        }
    }
    let about = format!(
        "At most {} of each kernel. What was predicted is relative to the first way.",
        number(SHOWN as f64, 0)
    );
    page.section("Ways", &about, &table.html());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_the_objects_have() {
        let objects = [
            json!({
                "reason": "aoti-tuning", "model": "net", "kernel": "fc <1>", "choice": "fast",
                "candidates": [
                    { "choice": "loops", "predicted": 1.0, "us": 20.0, "spread_us": 0.5 },
                    { "choice": "fast", "predicted": 1.2, "us": 15.0, "spread_us": 0.25 },
                    { "choice": "wrong", "predicted": 0.9, "refused": "it crashed" },
                ],
            }),
            json!({
                "reason": "aoti-tuned", "model": "net", "of": "kernels", "machine": "x86_64", "threads": 1,
                "whole": { "default_us": 100.0, "tuned_us": 95.0 },
            }),
        ];
        let html = page(&objects).html(&json!(objects));
        crate::page::tests::check(&html);
        for text in ["fc &lt;1&gt;", "75.0 %", "-5.0 %", ">20.00<", ">15.00<"] {
            assert!(html.contains(text), "{text}");
        }
        // Nothing to show is no mistake.
        crate::page::tests::check(&page(&[]).html(&Value::Null));
    }
}
