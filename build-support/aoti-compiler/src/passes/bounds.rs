//! Bounds of symbols that are read from data, by the guards over them: a program that states `k <= x.shape[0]` has told how
//! much memory `k` rows need.
//!
//! A bound is checked where the symbol is read, which is before the guards that it follows from. That changes no result:
//! only guards that are evaluated whenever the symbol is read count, and the run fails either way.

use crate::graph::{
    Condition, Graph, LARGEST_SIZE, Node, Op, SymbolInfo, SymbolSource, ValueId, extremes_of,
};
use crate::symbolic::{Expr, Extremes, Facts, Ranges, Symbol};
use std::collections::{BTreeMap, BTreeSet};

/// Gives symbols the bounds that follow from guards.
pub fn follow(mut graph: Graph) -> Graph {
    let mut symbols = std::mem::take(&mut graph.symbols);
    let facts = {
        let mut facts = crate::graph::facts_of(&symbols);
        graph.guards.iter().for_each(|guard| guard.condition.assume(&mut facts));
        facts
    };
    list(&graph.nodes, &facts, &mut symbols);
    graph.symbols = symbols;
    graph
}

/// As [`follow`]; what nothing limits then is limited by these numbers.
pub fn follow_or(graph: Graph, defaults: &BTreeMap<Symbol, i64>) -> Graph {
    let mut graph = follow(graph);
    let unlimited = unlimited(&graph);
    let missing: Vec<_> = defaults.iter().filter(|(symbol, _)| unlimited.contains(*symbol)).collect();
    if missing.is_empty() {
        return graph;
    }
    for (symbol, most) in missing {
        if let Some(info) = graph.symbols.get_mut(symbol.index as usize) {
            info.range.max = info.range.max.min(*most).max(info.range.min);
        }
    }
    // Other sizes may follow from these.
    follow(graph)
}

/// What a symbol never exceeds by conditions that all hold, over symbols that are known when a run begins.
pub fn of_conditions<'c>(
    symbol: Symbol,
    conditions: impl Iterator<Item = &'c Condition>,
    symbols: &[SymbolInfo],
) -> Option<Expr> {
    let mut facts = crate::graph::facts_of(symbols);
    conditions.for_each(|condition| condition.assume(&mut facts));
    facts.known().iter().find_map(|known| bound(symbol, known, symbols, &facts))
}

/// Sizes that are read from data and that nothing limits, in the shapes of a graph and of its bodies.
pub fn unlimited(graph: &Graph) -> BTreeSet<Symbol> {
    let mut sizes = BTreeSet::new();
    shapes(graph, &mut |size| {
        sizes.insert(size.clone());
    });
    let ranges = graph.ranges();
    let is_unlimited = |size: &Expr| {
        let extremes = size.extremes(&|symbol| extremes_of(&graph.symbols, symbol), &ranges);
        // Whatever follows from a symbol without bound is near the largest number.
        let most = extremes.and_then(|bounds| bounds.most.evaluate(&|_| Some(1)));
        most.is_none_or(|most| most > LARGEST_SIZE)
    };
    let mut found = BTreeSet::new();
    for size in sizes.iter().filter(|size| is_unlimited(size)) {
        let mut symbols = BTreeSet::new();
        size.collect_symbols(&mut symbols);
        found.extend(symbols.into_iter().filter(|symbol| {
            let info = graph.symbols.get(symbol.index as usize);
            info.is_some_and(|info| info.source == SymbolSource::Data)
        }));
    }
    found
}

fn shapes(graph: &Graph, visit: &mut dyn FnMut(&Expr)) {
    let mut values = |values: &[ValueId]| {
        values.iter().flat_map(|value| &graph.ty(*value).shape).for_each(&mut *visit);
    };
    graph.nodes.iter().for_each(|node| values(&node.outputs));
    for body in graph.nodes.iter().flat_map(bodies) {
        shapes(body, visit);
    }
}

fn bodies(node: &Node) -> Vec<&Graph> {
    if let Op::Cond { then, otherwise } = &node.op {
        return vec![then, otherwise];
    }
    let Op::While { condition, body, .. } = &node.op else { return vec![] };
    vec![condition, body]
}

/// One list of nodes, all of which run where one does.
fn list(nodes: &[Node], outer: &Facts, symbols: &mut Vec<SymbolInfo>) {
    let mut facts = outer.clone();
    let mut unbounded: BTreeSet<Symbol> = BTreeSet::new();
    for node in nodes {
        if let Op::Read(symbol) = &node.op {
            unbounded.insert(*symbol);
        } else if let Op::Require(guard) = &node.op {
            guard.condition.assume(&mut facts);
        }
    }
    for symbol in &unbounded {
        let least = facts.known().iter().filter_map(|known| least(*symbol, known, &facts)).max();
        if let (Some(info), Some(least)) = (symbols.get_mut(symbol.index as usize), least) {
            info.range.min = info.range.min.max(least).min(info.range.max);
        }
    }
    // The bound of one symbol may give that of another.
    while let Some((symbol, most)) = unbounded.iter().find_map(|symbol| {
        let bound = facts.known().iter().find_map(|known| bound(*symbol, known, symbols, &facts))?;
        Some((*symbol, bound))
    }) {
        unbounded.remove(&symbol);
        if let Some(info) = symbols.get_mut(symbol.index as usize) {
            match most.as_int() {
                Some(most) => info.range.max = info.range.max.min(most).max(info.range.min),
                None => info.most = Some(most),
            }
        }
    }
    for body in nodes.iter().flat_map(bodies) {
        list(&body.nodes, &facts, symbols);
    }
}

/// What a symbol never falls below where `known` is never negative.
fn least(symbol: Symbol, known: &Expr, facts: &Facts) -> Option<i64> {
    let (coefficient, rest) = known.affine_in(symbol)?;
    let coefficient = coefficient.as_int().filter(|coefficient| *coefficient > 0)?;
    let most = rest.interval(facts).max;
    (most < LARGEST_SIZE).then(|| -most.div_euclid(coefficient))
}

/// What a symbol never exceeds where `known` is never negative, over symbols that are known when a run begins.
fn bound(symbol: Symbol, known: &Expr, symbols: &[SymbolInfo], facts: &Facts) -> Option<Expr> {
    let (coefficient, rest) = known.affine_in(symbol)?;
    // `divisor * symbol <= rest`, where the divisor is at least 1.
    let divisor = -&coefficient;
    if divisor.interval(facts).min < 1 {
        return None;
    }
    let replace = |other: Symbol| {
        if other == symbol {
            return None;
        }
        extremes_of(symbols, other)
    };
    let extremes = rest.extremes(&replace, facts)?;
    let most = match divisor.as_int() {
        Some(divisor) => extremes.most.floor_div_in(&Expr::int(divisor), facts),
        // A symbol that is not negative is at most itself times what is at least 1.
        None if facts.range(symbol).min >= 0 => extremes.most,
        None => return None,
    };
    // A bound that comes from a symbol without one is none.
    let is_bound = most.evaluate(&|_| Some(1)).is_some_and(|most| most < LARGEST_SIZE);
    let Extremes { most: before, .. } = extremes_of(symbols, symbol)?;
    (is_bound && most != before).then_some(most)
}
