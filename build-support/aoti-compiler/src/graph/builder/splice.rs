//! Calls of the user's functions, and graphs put into graphs.

use super::{Builder, Built, ensure};
use crate::graph::{
    Collective, CollectiveKind, Condition, Coord, ExternCall, Graph, Guard, Node, Op, Relation, ShapeError,
    SymbolInfo, SymbolSource, TensorType, ValueId,
};
use crate::symbolic::{Expr, Interval, Ranges, Symbol, SymbolKind};
use cranelift_entity::{EntityRef, SecondaryMap};

/// An operand of a graph that is put into another.
#[derive(Clone, Debug)]
pub struct Spliced {
    /// The value.
    pub value: ValueId,
    /// Where it is a number over sizes, that number.
    pub number: Option<Expr>,
}

impl Builder {
    /// A call of a function of the user's project. Nothing is known of it but its types.
    pub fn extern_call(
        &mut self,
        call: ExternCall,
        operands: &[ValueId],
        types: Vec<TensorType>,
    ) -> Vec<ValueId> {
        self.push(Op::Extern(call), operands, types)
    }

    /// The nodes of a verified graph with these operands in the place of its inputs; gives its outputs. Its sizes follow
    /// from those of the operands, and what it demands of them is required here.
    pub fn splice(&mut self, graph: &Graph, operands: &[Spliced]) -> Built<Vec<ValueId>> {
        let bound = self.bind(graph, operands)?;
        let mut splice = Splice { bound, values: SecondaryMap::new() };
        for (input, operand) in graph.inputs.iter().zip(operands) {
            splice.values[input.value] = Some(operand.value);
        }
        for guard in &graph.guards {
            let guard = splice.guard(guard, &self.ranges);
            self.require(guard.condition, &guard.message);
        }
        for node in &graph.nodes {
            self.splice_node(graph, node, &mut splice)?;
        }
        Ok(graph.outputs.iter().map(|output| splice.current(output.value)).collect())
    }

    /// What each symbol of a graph is, for these operands.
    fn bind(&mut self, graph: &Graph, operands: &[Spliced]) -> Built<Vec<Expr>> {
        for (input, operand) in graph.inputs.iter().zip(operands) {
            let (wanted, given) = (graph.ty(input.value), self.ty(operand.value));
            let fits = wanted.dtype == given.dtype && wanted.rank() == given.rank();
            ensure!(fits, "input `{}` is {given}, must be {wanted}", input.name);
        }
        let mut bound = Vec::new();
        for SymbolInfo { name, range, source, .. } in &graph.symbols {
            let expr = match *source {
                SymbolSource::InputDim { input, axis } => {
                    let operand = operands.get(input);
                    operand.and_then(|operand| self.ty(operand.value).shape.get(axis).cloned())
                }
                SymbolSource::InputValue { input } => operands.get(input).and_then(|own| own.number.clone()),
                SymbolSource::Data => {
                    return Err(ShapeError(format!(
                        "it reads the size `{name}` from data, which is not supported"
                    )));
                }
            };
            let expr =
                expr.ok_or_else(|| ShapeError(format!("there is nothing that is its size `{name}`")))?;
            self.require_range(name, &expr, *range)?;
            bound.push(expr);
        }
        let substituted = Splice { bound, values: SecondaryMap::new() };
        for (input, operand) in graph.inputs.iter().zip(operands) {
            let (wanted, given) =
                (substituted.ty(graph.ty(input.value), &self.ranges), self.ty(operand.value).clone());
            for (a, b) in given.shape.iter().zip(&wanted.shape) {
                let differ = |_| ShapeError(format!("input `{}` is {given}, must be {wanted}", input.name));
                self.require_same(a, b).map_err(differ)?;
            }
        }
        Ok(substituted.bound)
    }

    fn require_range(&mut self, name: &str, expr: &Expr, range: Interval) -> Built<()> {
        for (relation, bound) in [(Relation::Ge, range.min), (Relation::Le, range.max)] {
            if bound == i64::MIN || bound == i64::MAX {
                continue;
            }
            let condition = Condition::compare(expr.clone(), relation, Expr::int(bound));
            let is_outside = condition.decide(&self.facts) == Some(false);
            ensure!(!is_outside, "`{name}` is {expr}, must be in {}..={}", range.min, range.max);
            self.require(condition, &format!("the bounds of `{name}`"));
        }
        Ok(())
    }

    fn splice_node(&mut self, graph: &Graph, node: &Node, splice: &mut Splice) -> Built<()> {
        let inputs: Vec<ValueId> = node.inputs.iter().map(|value| splice.current(*value)).collect();
        let values = if let Op::Constant(id) = &node.op {
            vec![self.constant(graph.constants[*id].clone())?]
        } else if let Op::Require(guard) = &node.op {
            let guard = splice.guard(guard, &self.ranges);
            self.require(guard.condition, &guard.message);
            vec![]
        } else {
            let op = splice.op(&node.op, &self.ranges)?;
            let types = node.outputs.iter().map(|value| splice.ty(graph.ty(*value), &self.ranges)).collect();
            self.push(op, &inputs, types)
        };
        for (old, new) in node.outputs.iter().zip(values) {
            splice.values[*old] = Some(new);
        }
        Ok(())
    }
}

/// A graph on its way into another.
struct Splice {
    /// What each of its symbols is there.
    bound: Vec<Expr>,
    /// What each of its values is there.
    values: SecondaryMap<ValueId, Option<ValueId>>,
}

impl Splice {
    fn current(&self, value: ValueId) -> ValueId {
        self.values[value].expect("a verified graph defines values before their uses")
    }

    fn expr(&self, expr: &Expr, ranges: &dyn Ranges) -> Expr {
        let replace = |symbol: Symbol| match symbol.kind {
            SymbolKind::Size => self.bound.get(symbol.index as usize).cloned(),
            SymbolKind::Axis => None,
        };
        expr.substitute(&replace, ranges)
    }

    fn exprs(&self, exprs: &[Expr], ranges: &dyn Ranges) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr, ranges)).collect()
    }

    fn ty(&self, ty: &TensorType, ranges: &dyn Ranges) -> TensorType {
        TensorType { dtype: ty.dtype, shape: self.exprs(&ty.shape, ranges) }
    }

    fn guard(&self, guard: &Guard, ranges: &dyn Ranges) -> Guard {
        let condition = guard.condition.map(&|expr| self.expr(expr, ranges));
        Guard { condition, message: guard.message.clone() }
    }

    fn coords(&self, coords: &[Coord], ranges: &dyn Ranges) -> Vec<Coord> {
        let one = |coord: &Coord| match coord {
            Coord::Expr(expr) => Coord::Expr(self.expr(expr, ranges)),
            Coord::Indirect(_) | Coord::Wrapped(_) => coord.clone(),
        };
        coords.iter().map(one).collect()
    }

    fn op(&self, op: &Op, ranges: &dyn Ranges) -> Built<Op> {
        Ok(match op {
            Op::Index(expr) => Op::Index(self.expr(expr, ranges)),
            Op::View(coords) => Op::View(self.exprs(coords, ranges)),
            Op::Pad { coords, fill } => Op::Pad { coords: self.exprs(coords, ranges), fill: *fill },
            Op::Gather(coords) => Op::Gather(self.coords(coords, ranges)),
            Op::Scatter { coords, combine } => {
                Op::Scatter { coords: self.coords(coords, ranges), combine: *combine }
            }
            Op::Cond { then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|body| self.body(body, ranges));
                Op::Cond { then: Box::new(then?), otherwise: Box::new(otherwise?) }
            }
            Op::While { condition, body, carried } => {
                let [condition, body] = [condition, body].map(|body| self.body(body, ranges));
                Op::While { condition: Box::new(condition?), body: Box::new(body?), carried: *carried }
            }
            Op::Collective(Collective { kind: CollectiveKind::AllToAll { send, receive }, group }) => {
                let [send, receive] = [send, receive].map(|sizes| self.exprs(sizes, ranges));
                Op::Collective(Collective {
                    kind: CollectiveKind::AllToAll { send, receive },
                    group: group.clone(),
                })
            }
            Op::Require(guard) => Op::Require(self.guard(guard, ranges)),
            Op::Read(_) => {
                return Err(ShapeError("it reads a size from data, which is not supported".to_owned()));
            }
            Op::Constant(_)
            | Op::Full(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Cast
            | Op::Cat { .. }
            | Op::Reduce { .. }
            | Op::Scan { .. }
            | Op::Sort { .. }
            | Op::NthElement { .. }
            | Op::SearchSorted { .. }
            | Op::Routine(_)
            | Op::Fourier(_)
            | Op::Recurrent(_)
            | Op::Extern(_)
            | Op::Collective(_)
            | Op::MatMul
            | Op::Conv(_)
            | Op::Assert(_) => op.clone(),
        })
    }

    /// A body, whose values and constants are its own and whose sizes are the graph's.
    fn body(&self, body: &Graph, ranges: &dyn Ranges) -> Built<Graph> {
        let mut body = body.clone();
        for index in 0..body.values.len() {
            let value = &mut body.values[ValueId::new(index)];
            value.ty = self.ty(&value.ty, ranges);
        }
        for node in &mut body.nodes {
            node.op = self.op(&node.op, ranges)?;
        }
        Ok(body)
    }
}
