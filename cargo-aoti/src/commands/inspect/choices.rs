//! `inspect --choices`: the ways to run each kernel, with what they are thought to cost and what was measured, and why one
//! of them is taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aoti_build::{LOCK_FILE, Lock, Place, Record};
use aoti_compiler::compile::{self, OpenKernel, Options};
use aoti_compiler::cost::{MachineInfo, WorkKind};
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::schedule::{Records, TuningKey};
use serde_json::{Value, json};

use crate::arguments::Output;
use crate::commands::{print, print_json};
use crate::failure::Failure;
use crate::single;
use crate::table;
use aoti_tune::log::parts;

/// Prints the choices of a model.
pub(super) fn run(model: ModelFile, path: &Path, options: &Options, output: Output) -> Result<(), Failure> {
    let lock = match lock_for(path) {
        Some(path) => Lock::read(&path)?.lock,
        None => Lock::default(),
    };
    // What this machine would build is not asked: every record that fits a kernel is shown.
    let mut records = Records::none();
    let mut of_kernels: BTreeMap<&TuningKey, Vec<&Record>> = BTreeMap::new();
    for (place, record) in &lock.records {
        of_kernels.entry(&place.kernel).or_default().push(record);
    }
    for (kernel, own) in of_kernels {
        records.set(kernel.clone(), Record::best(&own).clone());
    }
    let rates = lock.rates_for(std::env::consts::ARCH).cloned();
    let options = options.clone().with_measurements(records, rates);
    if !options.levels.is_empty() {
        show_prices(&options, output);
    }
    let kernels = compile::tuning_points(model, &options, MachineInfo::default())?;
    let mut shown = Vec::new();
    for kernel in kernels.iter().filter(|kernel| kernel.candidates.len() > 1) {
        // Kernels of one key are run in one way.
        if shown.contains(&&kernel.key) {
            continue;
        }
        shown.push(&kernel.key);
        let own = lock.records.iter().filter(|(place, _)| place.kernel == kernel.key).collect::<Vec<_>>();
        if output.is_json() {
            print_json(&as_json(kernel, &own));
        } else {
            print(&table::fit(&as_text(kernel, &own), output.width()));
        }
    }
    Ok(())
}

/// Prints what work costs on processors.
fn show_prices(options: &Options, output: Output) {
    let prices = compile::cpu_prices(options);
    let all = WorkKind::ALL.into_iter().map(|item| (item.name(), prices.of(item)));
    if output.is_json() {
        let all = all.map(|(name, price)| (name.to_owned(), json!(price))).collect();
        let is_measured = options.rates.is_some();
        print_json(
            &json!({ "reason": "aoti-prices", "prices": Value::Object(all), "by_rates": is_measured }),
        );
        return;
    }
    let all: Vec<String> = all.map(|(name, price)| format!("{name} {price:.3}")).collect();
    let by = if options.rates.is_some() { " by the rates of `aoti.lock`" } else { "" };
    let width = output.width().unwrap_or(usize::MAX);
    print(&(table::wrap(&format!("prices{by}: {}", all.join(", ")), width) + "\n"));
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
    let setting = &kernel.candidates[way].setting;
    let of = |(_, record): &(&Place, &Record)| match record.others.iter().find(|(own, _)| own == setting) {
        _ if record.setting == *setting => Some(record.micros),
        _ if way == 0 => Some(record.default_micros),
        other => other.map(|(_, micros)| *micros),
    };
    records.iter().filter_map(of).collect()
}

fn why(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> String {
    let taken = &kernel.candidates[kernel.taken].setting;
    let Some((place, record)) = records.iter().rev().find(|(_, record)| record.setting == *taken) else {
        return why_none_won(kernel, records);
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

/// The same where the way that is taken was the fastest of no single measurement.
fn why_none_won(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> String {
    let is_way = |record: &Record| kernel.candidates.iter().any(|way| way.setting == record.setting);
    let of_sizes: Vec<_> = records.iter().filter(|(place, _)| !place.sizes.is_empty()).collect();
    let is_measured = measured(kernel, kernel.taken, records).len() == records.len();
    let reason = match records {
        [] => "nothing was measured",
        _ if !records.iter().any(|(_, record)| is_way(record)) => {
            "what was measured names no way that this kernel has"
        }
        _ if is_measured && of_sizes.len() > 1 => {
            let sizes: Vec<_> = of_sizes.iter().map(|(place, _)| place.sizes.to_string()).collect();
            return format!("the best over all that was measured, sizes: {}", sizes.join("; "));
        }
        _ => "what was measured is of other machines",
    };
    format!("predicted to be the fastest; {reason}")
}

fn as_text(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> String {
    let mut text = format!("{} ({}): {}\n", kernel.name, kernel.key, why(kernel, records));
    for (position, way) in kernel.candidates.iter().enumerate() {
        let mark = if position == kernel.taken { '*' } else { ' ' };
        let times = measured(kernel, position, records);
        let times: Vec<String> = times.iter().map(|micros| format!("{micros:.2} us")).collect();
        let times = if times.is_empty() { "-".to_owned() } else { times.join(", ") };
        text.push_str(&format!("  {mark} {:>6.2} {times:>12}  {}\n", way.cost, way.setting.sentence()));
    }
    text
}

fn as_json(kernel: &OpenKernel, records: &[(&Place, &Record)]) -> Value {
    let way = |(position, way): (usize, &compile::TuningCandidate)| {
        json!({
            "choice": way.setting.to_string(), "sentence": way.setting.sentence(), "predicted": way.cost,
            "us": measured(kernel, position, records), "taken": position == kernel.taken, "parts": parts(way),
        })
    };
    json!({
        "reason": "aoti-choices",
        "kernel": kernel.name, "key": kernel.key.to_string(), "target": kernel.target,
        "why": why(kernel, records), "ways": kernel.candidates.iter().enumerate().map(way).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aoti_build::Sizes;

    const WAYS: [&str; 3] = [
        "loops",
        "gemm.general split rows 64 lanes outer grain 65536",
        "loops split rows 8 lanes outer grain 8",
    ];

    /// A kernel of three ways, of which the second is taken, with one open size.
    fn kernel() -> OpenKernel {
        let way = |text: &&str| compile::TuningCandidate {
            setting: text.parse().expect("a setting"),
            cost: 1.0,
            parts: Vec::new(),
            is_shared: false,
            shares: None,
        };
        let key = TuningKey::parse("0123456789abcdef").expect("a key");
        let candidates = WAYS.iter().map(way).collect();
        OpenKernel {
            name: "fc_linear".to_owned(),
            key,
            target: "cpu".to_owned(),
            sizes: vec![Some((0, 0))],
            index: Some(0),
            candidates,
            taken: 1,
        }
    }

    /// A measurement at one size: what won, and the others.
    fn record(size: i64, machine: &str, [winner, others @ ..]: [&str; 2]) -> (Place, Record) {
        let setting: aoti_compiler::schedule::Setting = winner.parse().expect("a setting");
        let place = Place {
            kernel: kernel().key,
            machine: machine.to_owned(),
            threads: 1,
            sizes: Sizes::of(&[Some((0, 0))], &[vec![size]]),
        };
        let record = Record {
            model: "net".to_owned(),
            name: "fc_linear".to_owned(),
            template: setting.version(),
            setting,
            micros: 1.0,
            spread: 0.1,
            default_micros: 3.0,
            others: others.iter().map(|other| (other.parse().expect("a setting"), 2.0)).collect(),
            predicted: 1.0,
            tool: String::new(),
            compiler: String::new(),
        };
        (place, record)
    }

    fn why_of(records: &[(Place, Record)]) -> String {
        let records: Vec<_> = records.iter().map(|(place, record)| (place, record)).collect();
        why(&kernel(), &records)
    }

    #[test]
    fn a_way_is_taken_for_what_was_measured_of_it() {
        let [default, taken, third] = WAYS;
        let of_sizes = why_of(&[record(1, "amd", [default, taken]), record(64, "amd", [third, taken])]);
        assert!(of_sizes.contains("the best over all that was measured, sizes: "), "{of_sizes}");
        assert!(of_sizes.contains('1') && of_sizes.contains("64"), "{of_sizes}");

        assert!(
            why_of(&[record(1, "amd", [taken, third])])
                .starts_with("1.00 us ± 0.10 instead of 3.00 us, on amd")
        );
        assert!(why_of(&[]).ends_with("nothing was measured"));
        let foreign = why_of(&[record(1, "amd", [third, default]), record(64, "intel", [third, default])]);
        assert!(foreign.ends_with("what was measured is of other machines"), "{foreign}");
        let unknown = "loops split rows 4 lanes outer grain 8";
        assert!(why_of(&[record(1, "amd", [unknown, unknown])]).ends_with("no way that this kernel has"));
    }
}
