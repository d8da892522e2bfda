//! Writes the terms of a value at given coordinates, through views and element-wise operators, down to buffers.

use super::Scope;
use super::element::Element;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Coord, Node, Relation, Scalar, ValueId};
use crate::loops::{Guard, Index, Site, Stage, Term, TermId};
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};
use indexmap::IndexMap;

/// A stage under construction.
pub(super) struct Expander<'s, 'a> {
    pub(super) scope: &'s mut Scope<'a>,
    pub(super) stage: Stage,
    /// Ranges of size symbols and of the nest's axes.
    pub(super) ranges: RangeTable,
    /// The value that this kernel computes: it is expanded even though it has a home.
    root: Option<ValueId>,
    /// The value that is the sum of the kernel, wherever it is used, and what the sum is multiplied by for it.
    sum: Option<(ValueId, f64)>,
    memo: IndexMap<(ValueId, Vec<Expr>, Vec<Guard>), TermId>,
}

impl<'s, 'a> Expander<'s, 'a> {
    pub(super) fn new(
        scope: &'s mut Scope<'a>,
        ranges: RangeTable,
        root: Option<ValueId>,
    ) -> Expander<'s, 'a> {
        Expander { scope, stage: Stage::default(), ranges, root, sum: None, memo: IndexMap::new() }
    }

    /// In a kernel whose sum, times a number, is this value.
    pub(super) fn with_scaled_sum(self, value: ValueId, scale: f64) -> Expander<'s, 'a> {
        Expander { sum: Some((value, scale)), ..self }
    }

    /// The term of a value at coordinates.
    pub(super) fn value(&mut self, value: ValueId, coords: &[Expr]) -> TermId {
        self.guarded(value, coords, &[])
    }

    /// The term of a value at coordinates that are only within bounds where the guards hold.
    fn guarded(&mut self, value: ValueId, coords: &[Expr], guards: &[Guard]) -> TermId {
        if let Some((_, scale)) = self.sum.filter(|(sum, _)| *sum == value) {
            let dtype = self.scope.graph.ty(value).dtype;
            let sum = self.stage.term(Term::Sum, dtype);
            if scale == 1.0 {
                return sum;
            }
            let scale = self.stage.term(Term::Literal(Scalar::Float(scale)), dtype);
            return self.stage.term(Term::Binary(BinaryOp::Mul, sum, scale), dtype);
        }
        let key = (value, coords.to_vec(), guards.to_vec());
        if let Some(term) = self.memo.get(&key) {
            return *term;
        }
        let is_root = self.root == Some(value);
        let term = match if is_root { None } else { self.scope.home(value) } {
            Some(buffer) => {
                let indices: Vec<Index> = coords.iter().cloned().map(Index::Expr).collect();
                let access = self.scope.access(value, buffer, &indices, &self.ranges);
                let dtype = self.scope.graph.ty(value).dtype;
                let fill = Scalar::Int(0).cast(dtype);
                self.stage.term(Term::Load { access, guards: guards.to_vec(), fill }, dtype)
            }
            None => {
                let node = self.scope.producer(value).expect("a value without a buffer is made by a node");
                self.node(node, value, coords, guards)
            }
        };
        self.memo.insert(key, term);
        term
    }

    fn node(&mut self, node: &'a Node, value: ValueId, coords: &[Expr], guards: &[Guard]) -> TermId {
        let dtype = self.scope.graph.ty(value).dtype;
        match Element::in_place(&node.op).expect("what only a kernel can make has a buffer") {
            Element::Literal(number) => self.stage.term(Term::Literal(number), dtype),
            Element::Index(expr) => {
                let expr = self.at(expr, coords);
                self.stage.term(Term::Index(expr), DType::I64)
            }
            Element::Unary(op) => {
                let a = self.guarded(node.inputs[0], coords, guards);
                self.stage.term(Term::Unary(op, a), dtype)
            }
            Element::Binary(op) => {
                let a = self.guarded(node.inputs[0], coords, guards);
                let b = self.guarded(node.inputs[1], coords, guards);
                match self.compared(op, a, b) {
                    Some(guard) => self.stage.term(Term::Inside(vec![guard]), dtype),
                    None => self.stage.term(Term::Binary(op, a, b), dtype),
                }
            }
            Element::Select => {
                let operands: Vec<TermId> =
                    node.inputs.iter().map(|input| self.guarded(*input, coords, guards)).collect();
                self.stage.term(Term::Select(operands[0], operands[1], operands[2]), dtype)
            }
            Element::Cast => {
                let a = self.guarded(node.inputs[0], coords, guards);
                self.stage.term(Term::Cast(a), dtype)
            }
            Element::View(map) => {
                let inner: Vec<Expr> = map.iter().map(|expr| self.at(expr, coords)).collect();
                self.guarded(node.inputs[0], &inner, guards)
            }
            Element::Pad(map, fill) => self.pad(node.inputs[0], map, fill, coords, guards),
            Element::Gather(map) => self.gather(node, map, coords, guards),
            Element::Cat(axis) => self.cat(node, axis, coords, guards),
        }
    }

    /// A comparison of positions, as one that code generation computes in as few bits as they fit.
    fn compared(&self, op: BinaryOp, a: TermId, b: TermId) -> Option<Guard> {
        let BinaryOp::Compare(relation) = op else { return None };
        let (a, b) = (self.position(a)?, self.position(b)?);
        let coordinate = match relation {
            Relation::Le => &b - &a,
            Relation::Lt => &(&b - &a) - 1,
            Relation::Ge => &a - &b,
            Relation::Gt => &(&a - &b) - 1,
            Relation::Eq | Relation::Ne => return None,
        };
        let most = coordinate.interval(&self.ranges).max;
        Some(Guard { coordinate, size: Expr::int(most.max(0).checked_add(1)?) })
    }

    /// The expression of a term that is one of positions.
    fn position(&self, term: TermId) -> Option<Expr> {
        let typed = &self.stage.terms[term];
        if let Term::Index(expr) = &typed.term {
            return Some(expr.clone());
        }
        let Term::Literal(Scalar::Int(value)) = typed.term else { return None };
        let value = i64::try_from(value).ok()?;
        (typed.dtype == DType::I64).then(|| Expr::int(value))
    }

    /// An expression over a value's axes, at coordinates.
    pub(super) fn at(&self, expr: &Expr, coords: &[Expr]) -> Expr {
        let replace = |symbol: Symbol| match symbol.kind {
            SymbolKind::Axis => coords.get(symbol.index as usize).cloned(),
            SymbolKind::Size => None,
        };
        expr.substitute(&replace, &self.ranges)
    }

    fn pad(
        &mut self,
        operand: ValueId,
        map: &[Expr],
        fill: Scalar,
        coords: &[Expr],
        guards: &[Guard],
    ) -> TermId {
        let shape = self.scope.graph.ty(operand).shape.clone();
        let dtype = self.scope.graph.ty(operand).dtype;
        let inner: Vec<Expr> = map.iter().map(|expr| self.at(expr, coords)).collect();
        let own: Vec<Guard> = inner
            .iter()
            .zip(&shape)
            .filter(|(coord, size)| {
                !coord.never_negative(&self.ranges) || !coord.always_less(size, &self.ranges)
            })
            .map(|(coordinate, size)| Guard { coordinate: coordinate.clone(), size: size.clone() })
            .collect();
        if own.is_empty() {
            return self.guarded(operand, &inner, guards);
        }
        let all: Vec<Guard> = guards.iter().chain(&own).cloned().collect();
        let value = self.guarded(operand, &inner, &all);
        // A load that only these guards hold back can bring the fill itself.
        if guards.is_empty()
            && let Term::Load { access, guards: held, .. } = &self.stage.terms[value].term
            && *held == all
        {
            let load = Term::Load { access: access.clone(), guards: all, fill };
            return self.stage.term(load, dtype);
        }
        let inside = self.stage.term(Term::Inside(own), DType::Bool);
        let fill = self.stage.term(Term::Literal(fill), dtype);
        self.stage.term(Term::Select(inside, value, fill), dtype)
    }

    /// One operand's element where the position is before the operand's end, else that of those behind it.
    fn cat(&mut self, node: &'a Node, axis: usize, coords: &[Expr], guards: &[Guard]) -> TermId {
        let dtype = self.scope.graph.ty(node.outputs[0]).dtype;
        let mut start = Expr::int(0);
        let mut parts = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let size = self.scope.graph.ty(*input).shape[axis].clone();
            let mut inner = coords.to_vec();
            inner[axis] = &coords[axis] - &start;
            start = &start + &size;
            let own = Guard { coordinate: inner[axis].clone(), size };
            let all: Vec<Guard> = guards.iter().chain([&own]).cloned().collect();
            parts.push((self.guarded(*input, &inner, &all), own));
        }
        let last = parts.pop().map(|(value, _)| value).expect("a concatenation has operands");
        parts.into_iter().rfold(last, |rest, (value, own)| {
            let inside = self.stage.term(Term::Inside(vec![own]), DType::Bool);
            self.stage.term(Term::Select(inside, value, rest), dtype)
        })
    }

    fn gather(&mut self, node: &'a Node, map: &[Coord], coords: &[Expr], guards: &[Guard]) -> TermId {
        let data = node.inputs[0];
        let ty = self.scope.graph.ty(data).clone();
        let buffer = self.scope.home(data).expect("gathered data has a buffer");
        let site = self.site(node);
        let indices = self.indices(map, &node.inputs[1..], &ty.shape, coords, guards, site);
        let access = self.scope.access(data, buffer, &indices, &self.ranges);
        let fill = Scalar::Int(0).cast(ty.dtype);
        self.stage.term(Term::Load { access, guards: guards.to_vec(), fill }, ty.dtype)
    }

    /// Coordinates of an indirect access, indices checked.
    pub(super) fn indices(
        &mut self,
        map: &[Coord],
        operands: &[ValueId],
        shape: &[Expr],
        coords: &[Expr],
        guards: &[Guard],
        site: usize,
    ) -> Vec<Index> {
        map.iter()
            .zip(shape)
            .map(|(coord, size)| match coord {
                Coord::Expr(expr) => Index::Expr(self.at(expr, coords)),
                Coord::Indirect(k) | Coord::Wrapped(k) => {
                    let index = self.guarded(operands[*k], coords, guards);
                    let wraps = matches!(coord, Coord::Wrapped(_));
                    let check = Term::CheckIndex { index, size: size.clone(), wraps, site };
                    Index::Term(self.stage.term(check, DType::I64))
                }
            })
            .collect()
    }

    /// The entry for messages about indices of a node.
    pub(super) fn site(&mut self, node: &Node) -> usize {
        let origin = &self.scope.graph.origins[node.origin];
        let mut text =
            if origin.node.is_empty() { "an index operator".to_owned() } else { origin.node.clone() };
        if !origin.source.is_empty() {
            text = format!("{text} at {}", origin.source);
        }
        self.scope.program.site(Site::Index(text))
    }
}
