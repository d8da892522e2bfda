//! Conditions on sizes that the export states: guards beside the graph, and assertions among the calls, which stay there.
//!
//! A condition that no expression over sizes says is computed by calls. A bound on one symbol that the program asserts narrows
//! the symbol's range. A guard that is not understood is refused: none is ignored.

use super::computed;
use super::expr::parse;
use super::import::Importer;
use crate::diagnostic::Code;
use crate::frontend::torch::aten::{Arg, Program};
use crate::graph::{Condition, Guard, Origin, Relation};
use crate::symbolic::{Interval, Node};

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
