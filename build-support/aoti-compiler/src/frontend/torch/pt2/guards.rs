//! Conditions on sizes that the export states: guards beside the graph, and assertions among the calls, which stay there.
//!
//! A condition that no expression over sizes says is computed by calls. A bound on one symbol that the program asserts narrows
//! the symbol's range. A guard that is not understood is refused: none is ignored.

use super::computed;
use super::expr::parse;
use super::import::Importer;
use super::symbols::ASSUMED;
use crate::diagnostic::Code;
use crate::frontend::torch::aten::{Arg, Call, Program};
use crate::graph::{Condition, Guard, Origin, Relation};
use crate::symbolic::{Expr, Interval, Node, Symbol};

/// Operators whose registration states a minimum of 2 for how many results there are, whatever the data.
const ASSUMES_TWO: [&str; 1] = ["torchvision.nms.default"];

impl Importer {
    /// The conditions beside the graph. Those that are none on sizes alone become assertions before the first call.
    pub(super) fn guards(&mut self, code: &[String], program: &mut Program) {
        let stated = self.symbols.stated_of_expressions().into_iter();
        program.guards.extend(stated.map(|condition| Guard { condition, message: String::new() }));
        let mut computed = 0;
        for text in code {
            let tree = parse(text);
            let condition = tree.clone().and_then(|tree| tree.condition(&mut self.symbols));
            match (tree, condition) {
                (_, Ok(condition)) => {
                    let guard = Guard { condition, message: String::new() };
                    if guard.condition != Condition::TRUE && !program.guards.contains(&guard) {
                        program.guards.push(guard);
                    }
                }
                (Ok(tree), Err(_)) => {
                    let asserted = computed::assert(program, &tree, text, &mut computed, &mut self.symbols);
                    if let Err(reason) = asserted {
                        self.unchecked(text, &reason);
                    }
                }
                (Err(reason), Err(_)) => self.unchecked(text, &reason),
            }
        }
    }

    fn unchecked(&mut self, text: &str, reason: &str) {
        let message = format!("the guard `{text}` of the export cannot be checked: {reason}");
        self.report(Code::Guard, message, &Origin::default());
    }

    /// Drops the minima of 2 that operators assume of the sizes of their own results: what torchvision registers for `nms` never
    /// tells one box from many, and the program then asserts that there are two at least. One box or none is usual.
    pub(super) fn drop_assumed_minima(&mut self, program: &mut Program) {
        let counted = program.calls.iter().filter(|call| ASSUMES_TWO.contains(&call.target.as_str()));
        let sizes = counted
            .filter_map(|call| program.tensors.get(call.outputs.first()?.tensor()?))
            .filter_map(|meta| meta.sizes.first());
        let symbols: Vec<Symbol> = sizes
            .filter_map(|size| if let Node::Sym(symbol) = size.node() { Some(*symbol) } else { None })
            .collect();
        for symbol in symbols {
            if self.symbols.lower_assumed(symbol) {
                program.calls.retain(|call| !asserts_two(call, symbol));
            }
        }
    }

    /// Narrows ranges by what the program, not a branch of it, asserts of single symbols.
    pub(super) fn narrow_ranges(&mut self, program: &Program) {
        for call in program.calls.iter().filter(|call| call.target == "aten._assert_scalar.default") {
            if let Some((_, Arg::Condition(condition))) = call.args.first() {
                self.narrow_range(condition);
            }
        }
    }

    fn narrow_range(&mut self, condition: &Condition) {
        let (left, relation, right) = match condition {
            Condition::All(parts) => return parts.iter().for_each(|part| self.narrow_range(part)),
            Condition::Compare(left, relation, right) => (left, relation, right),
            Condition::Any(_) | Condition::Fits(_) => return,
        };
        let (Node::Sym(symbol), Some(value)) = (left.node(), right.as_int()) else { return };
        // The range of a size of an input is that of the input.
        if !self.symbols.is_data(*symbol) {
            return;
        }
        let range = match relation {
            Relation::Eq => Interval::point(value),
            Relation::Ge => Interval::new(value, i64::MAX),
            Relation::Gt => Interval::new(value.saturating_add(1), i64::MAX),
            Relation::Le => Interval::new(i64::MIN, value),
            Relation::Lt => Interval::new(i64::MIN, value.saturating_sub(1)),
            Relation::Ne => return,
        };
        self.symbols.narrow(*symbol, range);
    }
}

/// Whether a call asserts no more than that a symbol is 2 at least.
fn asserts_two(call: &Call, symbol: Symbol) -> bool {
    let Some((_, Arg::Condition(Condition::Compare(left, relation, right)))) = call.args.first() else {
        return false;
    };
    let bound = match relation {
        Relation::Ge => right.as_int(),
        Relation::Gt => right.as_int().and_then(|bound| bound.checked_add(1)),
        Relation::Eq | Relation::Ne | Relation::Le | Relation::Lt => None,
    };
    call.target == "aten._assert_scalar.default" && *left == Expr::sym(symbol) && bound == Some(ASSUMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::import::MinSize;
    use crate::frontend::torch::aten::text::parse;
    use crate::frontend::torch::pt2::expr::Scope;
    use crate::frontend::torch::pt2::schema::RangeConstraint;
    use crate::frontend::torch::pt2::symbols::Symbols;
    use indexmap::IndexMap;

    #[test]
    fn one_box_may_be_left_or_none() {
        let range = RangeConstraint { min_val: Some(2), max_val: None };
        let read = |min, target: &str, bound: i64| {
            let text = format!(
                "program {{ symbol s0 \"u0\" in 2..inf from data input %x: f32[9, 4] input %y: f32[9]
                %kept: i64[s0] = {target}(dets = %x, scores = %y, iou_threshold = 0.5)
                aten._assert_scalar.default(self = holds [s0] ge [{bound}])
                output %kept }}"
            );
            let mut program = parse(&text).expect("the text parses");
            let mut symbols = Symbols::new(IndexMap::from([("u0".to_owned(), range)]), min, &[]);
            symbols.symbol("u0").unwrap();
            let mut importer = Importer { symbols, findings: Vec::new(), depth: 0 };
            importer.drop_assumed_minima(&mut program);
            importer.narrow_ranges(&program);
            (importer.symbols.finish().0[0].range.min, program.calls.len())
        };
        let nms = "torchvision.nms.default";
        assert_eq!(read(MinSize::Lowered(0), nms, 2), (0, 1));
        assert_eq!(read(MinSize::Stated, nms, 2), (2, 2));
        // What the user asserts stays, and so does what others state of their results.
        assert_eq!(read(MinSize::Lowered(0), nms, 3), (3, 2));
        assert_eq!(read(MinSize::Lowered(0), "my.nms.default", 2), (2, 2));
    }
}
