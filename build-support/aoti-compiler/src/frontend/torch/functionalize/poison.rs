//! What follows from calls that are refused: it is no finding of its own.

use crate::frontend::torch::aten::{Arg, Call, Output, Program};
use crate::graph::Builder;
use crate::symbolic::{Expr, Symbol, SymbolKind};
use std::collections::BTreeSet;

/// Values and numbers that refused calls would have given.
#[derive(Default)]
pub(crate) struct Poison {
    names: BTreeSet<String>,
    symbols: BTreeSet<Symbol>,
}

impl Poison {
    /// Whether a call depends on one of them.
    pub(crate) fn reaches(&self, call: &Call) -> bool {
        let concerns = |expr: &Expr| self.symbols.iter().any(|symbol| expr.mentions(*symbol));
        call.args.iter().any(|(_, arg)| match arg {
            Arg::Int(value) => concerns(value),
            Arg::Ints(values) => values.iter().any(concerns),
            Arg::Condition(condition) => condition.expressions().into_iter().any(concerns),
            Arg::None
            | Arg::Tensor(_)
            | Arg::Tensors(_)
            | Arg::Float(_)
            | Arg::Floats(_)
            | Arg::Complex { .. }
            | Arg::Bool(_)
            | Arg::Bools(_)
            | Arg::SymBool(_)
            | Arg::SymFloat(_)
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Other(_)
            | Arg::Graph(_) => arg.tensors().into_iter().any(|name| self.names.contains(name)),
        })
    }

    /// Adds what a call would have given: its results, and the numbers that would have been read from them.
    pub(crate) fn spread(&mut self, call: &Call, program: &Program, built: &Builder) {
        let mut numbers = BTreeSet::new();
        for output in &call.outputs {
            for name in output.tensors() {
                let sizes = program.tensors.get(name).map(|meta| meta.sizes.as_slice());
                sizes.unwrap_or_default().iter().for_each(|size| size.collect_symbols(&mut numbers));
                self.names.insert(name.to_owned());
            }
            match output {
                Output::SymInt(name) => {
                    program
                        .sym_ints
                        .get(name)
                        .into_iter()
                        .for_each(|value| value.collect_symbols(&mut numbers));
                }
                Output::SymBool(name) => {
                    self.names.insert(name.clone());
                    let conditions = program.conditions.get(name).into_iter();
                    numbers.extend(conditions.flat_map(|condition| condition.symbols()));
                }
                Output::SymFloat(name) => {
                    self.names.insert(name.clone());
                }
                Output::Tensor(_) | Output::Tensors(_) | Output::None => {}
            }
        }
        let is_lost = |symbol: &Symbol| {
            symbol.kind == SymbolKind::Size && built.is_data(*symbol) && !built.is_read(*symbol)
        };
        self.symbols.extend(numbers.into_iter().filter(is_lost));
    }
}
