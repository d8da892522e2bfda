//! `inspect --choices`: the ways to run each kernel, with what they are thought to cost and what was measured, and why one
//! of them is taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aoti_build::{LOCK_FILE, Lock, Place, Record};
use aoti_compiler::compile::{self, OpenKernel, Options};
use aoti_compiler::schedule::{KernelKey, Records};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::commands::{print, print_json};
use crate::failure::Failure;
use crate::single;

/// Prints the choices of a model.
pub(super) fn run(model: Bytes, path: &Path, options: &Options, is_json: bool) -> Result<(), Failure> {
    let lock = match lock_for(path) {
        Some(path) => Lock::read(&path)?.lock,
        None => Lock::default(),
    };
    // What this machine would build is not asked: every record that fits a kernel is shown.
    let mut records = Records::none();
    let mut of_kernels: BTreeMap<&KernelKey, Vec<&Record>> = BTreeMap::new();
    for (place, record) in &lock.records {
        of_kernels.entry(&place.kernel).or_default().push(record);
    }
    for (kernel, own) in of_kernels {
        records.set(kernel.clone(), Record::best(&own).clone());
    }
    let options = Options { records, ..options.clone() };
    let kernels = compile::open_kernels(model, &options);
    let kernels = kernels.map_err(|diagnostics| Failure::User(diagnostics.to_string()))?;
    let mut shown = Vec::new();
    for kernel in kernels.iter().filter(|kernel| kernel.ways.len() > 1) {
        // Kernels of one key are run in one way.
        if shown.contains(&&kernel.key) {
            continue;
        }
        shown.push(&kernel.key);
        let own = lock.records.iter().filter(|(place, _)| place.kernel == kernel.key).collect::<Vec<_>>();
        if is_json {
            print_json(&as_json(kernel, &own));
        } else {
            print(&as_text(kernel, &own));
        }
    }
    Ok(())
}

/// The lock that a build of a model goes by: beside its file, or in the folder of the package that it lies in.
fn lock_for(path: &Path) -> Option<PathBuf> {
    let beside = fs_err::canonicalize(path).ok()?.with_file_name(LOCK_FILE);
    if beside.is_file() {
        return Some(beside);
    }
    Some(single::package_of(path)?.join(LOCK_FILE)).filter(|lock| lock.is_file())
}

/// What was measured of a way, over all records of its kernel.
fn measured(kernel: &OpenKernel, way: usize, records: &[(&Place, &Record)]) -> Vec<f64> {
    let setting = &kernel.ways[way].setting;
    let of = |(_, record): &(&Place, &Record)| match record.others.iter().find(|(own, _)| own == setting) {
        _ if record.setting == *setting => Some(record.micros),
        _ if way == 0 => Some(record.default_micros),
        other => other.map(|(_, micros)| *micros),
    };
    records.iter().filter_map(of).collect()
}

fn why(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> String {
    let taken = &kernel.ways[kernel.taken].setting;
    let Some((place, record)) = records.iter().rev().find(|(_, record)| record.setting == *taken) else {
        return match records.is_empty() {
            true => "predicted to be the fastest; nothing was measured".to_owned(),
            false => {
                "predicted to be the fastest; what was measured names no way that this kernel has".to_owned()
            }
        };
    };
    let sizes = if place.sizes.is_empty() { String::new() } else { format!(", sizes: {}", place.sizes) };
    let on = format!("{} (threads: {}{sizes})", place.machine, place.threads);
    if kernel.taken == 0 {
        let micros = record.micros;
        return format!("{micros:.2} us, and no other was faster beyond noise, on {on}");
    }
    let (micros, spread, first) = (record.micros, record.spread, record.default_micros);
    format!("{micros:.2} us ± {spread:.2} instead of {first:.2} us, on {on}")
}

fn as_text(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> String {
    let mut text = format!("{} ({}): {}\n", kernel.name, kernel.key, why(kernel, records));
    for (position, way) in kernel.ways.iter().enumerate() {
        let mark = if position == kernel.taken { '*' } else { ' ' };
        let times = measured(kernel, position, records);
        let times: Vec<String> = times.iter().map(|micros| format!("{micros:.2} us")).collect();
        let times = if times.is_empty() { "-".to_owned() } else { times.join(", ") };
        text.push_str(&format!("  {mark} {:>6.2} {times:>12}  {}\n", way.cost, way.setting.sentence()));
    }
    text
}

fn as_json(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> Value {
    let way = |(position, way): (usize, &compile::OpenWay)| {
        json!({
            "choice": way.setting.to_string(), "sentence": way.setting.sentence(), "predicted": way.cost,
            "us": measured(kernel, position, records), "taken": position == kernel.taken,
        })
    };
    json!({
        "reason": "choices",
        "kernel": kernel.name, "key": kernel.key.to_string(), "target": kernel.target,
        "why": why(kernel, records), "ways": kernel.ways.iter().enumerate().map(way).collect::<Vec<_>>(),
    })
}
