//! Fits the prices of the cost model to measurements: `cargo xtask refit FOLDER/tuning.jsonl`, the log that `cargo aoti tune`
//! keeps in the cache's folder (`cargo aoti cache stat` says where that is).
//!
//! A line of the log says how much work of each kind a way to run a kernel is, and how long it took. Times are compared
//! within a kernel only, so that prices are ratios; kinds that no kernel tells apart keep their price. How well costs order
//! times is said over all kernels too.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Factors that a price is tried with, again and again.
const STEPS: [f64; 6] = [1.5, 1.1, 1.02, 1.0 / 1.5, 1.0 / 1.1, 1.0 / 1.02];
/// What the others are measured by, and what machines without matrix units do in their place.
const ANCHORS: [&str; 3] = ["vector-fma", "access", "matrix-unit-fallback"];
/// Times that all prices are gone through.
const ROUNDS: usize = 200;
/// A price changes by no more than this factor: beyond that it is not the price that is wrong.
const MOST: f64 = 16.0;
/// Measurements that are needed before a price is believed.
const ENOUGH: usize = 12;

/// A way to run a kernel that was measured.
struct Candidate {
    template: String,
    /// Amounts of work by kind.
    parts: BTreeMap<String, f64>,
    micros: f64,
    spread: f64,
    /// Whether all sizes are known that the cost goes by; else only ways of the same kernel compare.
    is_sized: bool,
}

/// Prices by kind.
type CostModel = BTreeMap<String, f64>;

/// What a class of machines measured: the ways of each kernel, and the prices that they were predicted with.
#[derive(Default)]
struct Measured {
    kernels: BTreeMap<String, Vec<Candidate>>,
    prices: CostModel,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [path] = arguments else { bail!("usage: cargo xtask refit FOLDER/tuning.jsonl") };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"))?;
    let classes = read(&text).with_context(|| format!("`{path}`"))?;
    ensure!(!classes.is_empty(), "`{path}` has no measurements of kernels that say their parts");
    for ((machine, threads), measured) in &classes {
        println!("{}", report(machine, *threads, measured));
    }
    Ok(())
}

/// The measurements of each class of machines and number of threads. Times of whole runs say nothing of a kernel's cost.
fn read(text: &str) -> Result<BTreeMap<(String, u64), Measured>> {
    let mut classes: BTreeMap<(String, u64), Measured> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (Some(parts), Some(micros), Some(spread), Some(threads), Some(false)) = (
            value["parts"].as_object().filter(|parts| !parts.is_empty()),
            value["us"].as_f64(),
            value["spread_us"].as_f64(),
            value["threads"].as_u64(),
            value["whole_runs"].as_bool(),
        ) else {
            continue;
        };
        // A cost is that of one kernel, a time that of all that are alike.
        let kernels = value["kernels"].as_f64().unwrap_or(1.0).max(1.0);
        let measured = classes.entry((word("machine"), threads)).or_default();
        let pair = |own: &Value| Some((own[0].as_f64()?, own[1].as_f64()?));
        let mut amounts = BTreeMap::new();
        for (name, (amount, price)) in parts.iter().filter_map(|(name, own)| Some((name, pair(own)?))) {
            amounts.insert(name.clone(), amount);
            measured.prices.insert(name.clone(), price);
        }
        let template = word("choice").split(' ').next().unwrap_or_default().to_owned();
        let is_sized = word("sizes").is_empty();
        let way = Candidate {
            template,
            parts: amounts,
            micros: micros / kernels,
            spread: spread / kernels,
            is_sized,
        };
        // The same kernel at another time is another kernel: only what ran by turns is compared.
        let kernel = format!("{} {} {}", word("key"), word("model"), value["seconds"]);
        measured.kernels.entry(kernel).or_default().push(way);
    }
    classes.retain(|_, measured| {
        measured.kernels.retain(|_, candidates| candidates.len() > 1);
        !measured.kernels.is_empty()
    });
    Ok(classes)
}

fn cost(way: &Candidate, prices: &CostModel) -> f64 {
    let total: f64 = way.parts.iter().map(|(name, amount)| amount * prices[name]).sum();
    total.max(f64::MIN_POSITIVE)
}

impl Measured {
    /// How far predictions are off: squares of logarithms of ratios, of noisy times less.
    fn error(&self, prices: &CostModel) -> f64 {
        let of_kernel = |candidates: &Vec<Candidate>| -> f64 {
            let weight = |way: &Candidate| 1.0 / (0.02 + way.spread / way.micros.max(1e-3));
            let weights: f64 = candidates.iter().map(weight).sum();
            let off = |way: &Candidate| (cost(way, prices) / way.micros.max(1e-3)).ln();
            let mean = candidates.iter().map(|way| weight(way) * off(way)).sum::<f64>() / weights;
            candidates.iter().map(|way| weight(way) * (off(way) - mean).powi(2)).sum::<f64>() / weights
        };
        self.kernels.values().map(of_kernel).sum::<f64>() / self.kernels.len() as f64
    }

    /// The kinds of work that ways of one kernel have different amounts of, beside what others are measured by, with the
    /// number of ways that say so.
    fn told_apart(&self) -> BTreeMap<&str, usize> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for candidates in self.kernels.values() {
            for name in self.prices.keys().filter(|name| !ANCHORS.contains(&name.as_str())) {
                let share = |way: &Candidate| {
                    let whole: f64 = way.parts.values().sum();
                    way.parts.get(name).map_or(0.0, |amount| amount / whole)
                };
                let differs = candidates.iter().any(|way| (share(way) - share(&candidates[0])).abs() > 1e-6);
                *counts.entry(name).or_default() += if differs { candidates.len() } else { 0 };
            }
        }
        counts.retain(|_, count| *count >= ENOUGH);
        counts
    }

    /// The prices that fit best, found one by one.
    fn fitted(&self) -> CostModel {
        let (mut prices, free) = (self.prices.clone(), self.told_apart());
        let mut error = self.error(&prices);
        for _ in 0..ROUNDS {
            let before = error;
            for name in free.keys() {
                for step in STEPS {
                    let (old, first) = (prices[*name], self.prices[*name]);
                    let new = (old * step).clamp(first / MOST, first * MOST);
                    prices.insert((*name).to_owned(), new);
                    let own = self.error(&prices);
                    if own < error {
                        error = own;
                    } else {
                        prices.insert((*name).to_owned(), old);
                    }
                }
            }
            if before - error < 1e-9 {
                break;
            }
        }
        prices
    }

    /// For each template the rank correlation of costs and times over all kernels, and the number of ways. The cost of a kernel
    /// with open sizes is that of typical ones, whatever it was measured at.
    fn correlations(&self, prices: &CostModel) -> BTreeMap<&str, Correlation> {
        let mut pairs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for way in self.kernels.values().flatten().filter(|way| way.is_sized) {
            pairs.entry(&way.template).or_default().push((cost(way, prices), way.micros));
        }
        pairs.into_iter().map(|(name, pairs)| (name, Correlation::of(&pairs))).collect()
    }
}

/// How well costs order times.
struct Correlation {
    own: f64,
    /// If the same times came in the order of costs: below 1 where there are ways of one cost.
    most: f64,
    candidates: usize,
}

impl Correlation {
    fn of(pairs: &[(f64, f64)]) -> Correlation {
        let (mut costs, mut times): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        costs.sort_by(f64::total_cmp);
        times.sort_by(f64::total_cmp);
        let ordered: Vec<(f64, f64)> = costs.into_iter().zip(times).collect();
        let (own, most) = (rank_correlation(pairs), rank_correlation(&ordered));
        Correlation { own, most, candidates: pairs.len() }
    }
}

/// Spearman's correlation of ranks.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count();
            let equal = values.iter().filter(|other| *other == value).count();
            below as f64 + (equal as f64 - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let a = ranks(pairs.iter().map(|pair| pair.0).collect());
    let b = ranks(pairs.iter().map(|pair| pair.1).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let of = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    of(&a, &b) / (of(&a, &a) * of(&b, &b)).sqrt().max(f64::MIN_POSITIVE)
}

/// What is to be put into the table of prices, and what it changes. Prices are those of one thread: what several share says of
/// most kinds of work no more than what one thread says, and more of what others do on the machine.
fn report(machine: &str, threads: u64, measured: &Measured) -> String {
    if threads > 1 {
        let mut text = format!("{machine}, {threads} threads: {} kernels\n", measured.kernels.len());
        for (template, Correlation { own, most, candidates }) in &measured.correlations(&measured.prices) {
            text.push_str(&format!(
                "  {template}: rank correlation {own:.2}, at most {most:.2}, of {candidates} ways\n"
            ));
        }
        return text;
    }
    let fitted = measured.fitted();
    let level = machine.split('.').nth(1).unwrap_or(machine);
    let mut text = format!("{machine}: {} kernels\n", measured.kernels.len());
    let (before, after) = (measured.correlations(&measured.prices), measured.correlations(&fitted));
    for (template, Correlation { own: old, most, candidates }) in &before {
        let new = after[template].own;
        text.push_str(&format!(
            "  {template}: rank correlation {old:.2}, fitted {new:.2}, at most {most:.2}, of {candidates} ways\n"
        ));
    }
    let (old, new) = (measured.error(&measured.prices).sqrt(), measured.error(&fitted).sqrt());
    text.push_str(&format!(
        "  ratios are off by {:.0} %, fitted {:.0} %\n",
        old.exp_m1() * 100.0,
        new.exp_m1() * 100.0
    ));
    let changed = fitted.iter().filter(|(name, price)| **price != measured.prices[*name]);
    let entry = |(name, price): (&String, &f64)| format!("(WorkKind::{}, {price:.3})", item(name));
    let entries: Vec<String> = changed.map(entry).collect();
    text.push_str(&format!("  (\"{level}\", &[{}]),", entries.join(", ")));
    text
}

/// The variant of an item's name.
fn item(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    };
    name.split('-').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of kernels whose times follow these prices, predicted with others.
    fn planted(packed: f64, panel: f64) -> String {
        let mut text = String::new();
        for kernel in 1..=8 {
            let work = f64::from(kernel) * 1000.0;
            for (choice, packs, panels) in
                [("a", 0.0, 0.1), ("a x", 0.2, 0.1), ("b", 0.0, 0.3), ("b x", 0.2, 0.3)]
            {
                let micros = work * (1.0 + packs * packed + panels * panel);
                text.push_str(&format!(
                    "{{\"machine\":\"arch.level.cpu\",\"threads\":1,\"key\":\"{kernel}\",\"model\":\"m\",\"seconds\":1,\
                     \"choice\":\"{choice}\",\"us\":{micros},\"spread_us\":0.1,\"whole_runs\":false,\
                     \"parts\":{{\"vector-fma\":[{work},1.0],\"pack-element\":[{},4.0],\"panel-load\":[{},1.5]}}}}\n",
                    work * packs,
                    work * panels
                ));
            }
        }
        text
    }

    #[test]
    fn the_prices_behind_measurements_are_found() {
        let classes = read(&planted(9.0, 0.5)).unwrap();
        let class = &classes[&("arch.level.cpu".to_owned(), 1)];
        let fitted = class.fitted();
        assert!(
            (fitted["pack-element"] / 9.0 - 1.0).abs() < 0.05
                && (fitted["panel-load"] / 0.5 - 1.0).abs() < 0.1,
            "{fitted:?}"
        );
        assert_eq!(fitted["vector-fma"], 1.0, "others are measured by it");
        let text = report("arch.level.cpu", 1, class);
        assert!(
            text.contains("(\"level\", &[(WorkKind::PackElement, ") && text.contains("fitted 1.00"),
            "{text}"
        );
    }

    #[test]
    fn prices_that_fit_stay_and_others_that_nothing_tells_of_too() {
        let classes = read(&planted(4.0, 1.5)).unwrap();
        let measured = &classes[&("arch.level.cpu".to_owned(), 1)];
        assert_eq!(measured.fitted(), measured.prices);
        let one = planted(9.0, 0.5).lines().step_by(4).collect::<Vec<_>>().join("\n");
        assert!(read(&one).unwrap().is_empty(), "kernels of one way say nothing");
    }

    #[test]
    fn several_threads_are_a_class_of_their_own_without_prices() {
        let text = planted(9.0, 0.5).replace("\"threads\":1", "\"threads\":2");
        let classes = read(&text).unwrap();
        let text = report("arch.level.cpu", 2, &classes[&("arch.level.cpu".to_owned(), 2)]);
        assert!(
            text.contains("2 threads") && text.contains("rank correlation") && !text.contains("WorkKind::"),
            "{text}"
        );
    }

    #[test]
    fn a_time_is_of_all_kernels_that_are_alike() {
        let text = planted(9.0, 0.5).replace("\"us\":", "\"kernels\":4,\"us\":");
        let classes = read(&text).unwrap();
        let way = &classes[&("arch.level.cpu".to_owned(), 1)].kernels["1 m 1"][0];
        assert!((way.micros - 1000.0 * 1.05 / 4.0).abs() < 1e-9, "{}", way.micros);
    }

    #[test]
    fn costs_of_typical_sizes_are_compared_within_a_kernel_only() {
        let sized = planted(9.0, 0.5);
        let open = sized.replace("\"key\":\"8\"", "\"sizes\":\"2x64\",\"key\":\"8\"");
        let candidates = |text: &str| {
            let classes = read(text).unwrap();
            let measured = &classes[&("arch.level.cpu".to_owned(), 1)];
            (measured.kernels.len(), measured.correlations(&measured.prices)["a"].candidates)
        };
        assert_eq!((candidates(&sized), candidates(&open)), ((8, 16), (8, 14)));
    }

    #[test]
    fn ways_of_one_cost_cannot_be_ordered() {
        let own = |pairs: &[(f64, f64)]| {
            let Correlation { own, most, .. } = Correlation::of(pairs);
            (own, most)
        };
        let (all, most) = own(&[(1.0, 5.0), (2.0, 6.0), (3.0, 9.0)]);
        assert!((all - 1.0).abs() < 1e-9 && (most - 1.0).abs() < 1e-9);
        let (tied, most) = own(&[(1.0, 5.0), (1.0, 6.0), (3.0, 9.0)]);
        assert!(most < 0.95 && (tied - most).abs() < 1e-9, "no order of these would do better");
        assert!(own(&[(1.0, 9.0), (1.0, 6.0), (3.0, 5.0)]).0 < 0.0);
    }

    #[test]
    fn lines_that_are_no_measurements_of_kernels_are_passed_over() {
        let text = planted(9.0, 0.5).replace("\"whole_runs\":false", "\"whole_runs\":true");
        assert!(read(&text).unwrap().is_empty());
        assert!(read("{\"machine\":\"m\"}\n").unwrap().is_empty());
        assert!(read("no JSON\n").is_err());
    }

    #[test]
    fn names_become_variants() {
        assert_eq!(
            (item("reread-operand"), item("panel-load")),
            ("RereadOperand".to_owned(), "PanelLoad".to_owned())
        );
    }
}
