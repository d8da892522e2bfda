//! Elements of small tensors as expressions over sizes: what a program computes about shapes is known when it is compiled.
//!
//! A size that takes a way through floating-point numbers (`floor(height * 1.5)`) is a fraction of an expression until it is an
//! integer again.

mod element;

use super::Builder;
use crate::dtype::{Category, DType};
use crate::graph::{
    BinaryOp, Condition, Coord, FloatBinary, IntBinary, Node, Op, ReduceOp, Relation, ValueId,
};
use crate::symbolic::{Expr, Symbol, SymbolKind};
use element::{
    Element, LARGEST_DENOMINATOR, of_bits, of_bytes, of_numbers, of_scalar, reduced_fraction, unary,
};
use indexmap::IndexMap;

/// Operations between a tensor and the sizes that it is made of.
const NESTED: usize = 64;
/// Elements of a tensor that is looked into.
const LARGEST: i64 = 4096;
/// Elements that are looked at on the way to those of one tensor.
const STEPS: usize = 100_000;

impl Builder {
    /// The elements of a tensor of integers or truth values in row-major order, if they are few and follow from sizes and
    /// constants alone.
    pub fn elements(&self, value: ValueId) -> Option<Vec<Expr>> {
        if self.ty(value).dtype.is_float() {
            return None;
        }
        self.all_elements(value)?.iter().map(|element| element.integer().cloned()).collect()
    }

    fn all_elements(&self, value: ValueId) -> Option<Vec<Element>> {
        let ty = self.ty(value);
        let sizes: Vec<i64> = ty.shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
        let count = sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size))?;
        if count > LARGEST {
            return None;
        }
        let mut look = Look::new(self);
        (0..count)
            .map(|mut position| {
                let mut coords = vec![Expr::int(0); sizes.len()];
                for (coord, size) in coords.iter_mut().zip(&sizes).rev() {
                    *coord = Expr::int(position % size);
                    position /= size;
                }
                look.at(value, &coords, NESTED)
            })
            .collect()
    }

    /// The elements of a tensor of numbers in row-major order, if they are few constants.
    pub fn numbers(&self, value: ValueId) -> Option<Vec<f64>> {
        self.all_elements(value)?.iter().map(Element::value).collect()
    }

    /// By how much the only element of one tensor of integers exceeds that of another, where that is always the same although data
    /// decide both.
    pub fn distance(&self, from: ValueId, to: ValueId) -> Option<i64> {
        let mut look = Look { has_unknowns: true, ..Look::new(self) };
        let mut only = |value: ValueId| {
            let coords = vec![Expr::int(0); self.rank(value)];
            look.at(value, &coords, NESTED)?.integer().cloned()
        };
        (&only(to)? - &only(from)?).as_int()
    }

    /// The only element of a tensor of integers or truth values.
    pub fn element(&self, value: ValueId) -> Option<Expr> {
        match self.elements(value)?.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

struct Look<'b> {
    builder: &'b Builder,
    known: IndexMap<(ValueId, Vec<Expr>), Option<Element>>,
    steps: usize,
    /// Whether integers of which nothing is known are symbols.
    has_unknowns: bool,
}

impl<'b> Look<'b> {
    fn new(builder: &'b Builder) -> Look<'b> {
        Look { builder, known: IndexMap::new(), steps: STEPS, has_unknowns: false }
    }

    fn at(&mut self, value: ValueId, coords: &[Expr], depth: usize) -> Option<Element> {
        let key = (value, coords.to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        self.steps = self.steps.checked_sub(1)?;
        let node = self.builder.producer(value).filter(|_| depth > 0);
        let element = node.and_then(|node| self.of_node(node, value, coords, depth - 1));
        let element = element.or_else(|| self.unknown(value));
        self.known.insert(key, element.clone());
        element
    }

    /// A symbol of its own for an integer that data decide.
    fn unknown(&self, value: ValueId) -> Option<Element> {
        if !self.has_unknowns || self.builder.dtype(value).category() != Category::Int {
            return None;
        }
        // From the other end than those of sizes.
        let number = u32::try_from(self.known.len()).ok()?;
        Some(Element::int(Expr::sym(Symbol::size(u32::MAX - number))))
    }

    fn of_node(&mut self, node: &Node, value: ValueId, coords: &[Expr], depth: usize) -> Option<Element> {
        let operand = |look: &mut Self, position: usize| look.at(node.inputs[position], coords, depth);
        match &node.op {
            Op::Constant(id) => self.of_constant(*id, coords),
            Op::Full(number) => of_scalar(*number),
            Op::Index(expr) => Some(Element::int(self.placed(expr, coords))),
            Op::Unary(op) => unary(*op, &operand(self, 0)?),
            Op::Binary(op) => {
                let (a, b) = (operand(self, 0)?, operand(self, 1)?);
                let is_float = self.builder.dtype(node.inputs[0]).is_float();
                self.binary(*op, &a, &b, is_float)
            }
            Op::Select => {
                let chosen = operand(self, 0)?.integer()?.as_int()?;
                operand(self, if chosen != 0 { 1 } else { 2 })
            }
            Op::Cast => operand(self, 0).and_then(|x| self.cast(&x, self.builder.dtype(value))),
            Op::View(own) => {
                let own: Vec<Expr> = own.iter().map(|coord| self.placed(coord, coords)).collect();
                self.at(node.inputs[0], &own, depth)
            }
            Op::Pad { coords: own, fill } => {
                let own: Vec<Expr> = own.iter().map(|coord| self.placed(coord, coords)).collect();
                match self.is_within(node.inputs[0], &own)? {
                    true => self.at(node.inputs[0], &own, depth),
                    false => of_scalar(*fill),
                }
            }
            Op::Gather(own) => {
                let own = self.gathered(node, own, coords, depth)?;
                self.at(node.inputs[0], &own, depth)
            }
            Op::Cat { axis } => self.of_cat(node, *axis, coords, depth),
            Op::Reduce { op, axes } => self.reduced(node, *op, axes, coords, depth),
            Op::Scatter { .. }
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
            | Op::Read(_)
            | Op::Assert(_)
            | Op::Require(_)
            | Op::Cond { .. }
            | Op::While { .. } => None,
        }
    }

    /// An expression over axes at a position.
    fn placed(&self, expr: &Expr, coords: &[Expr]) -> Expr {
        let replace = |symbol: Symbol| {
            (symbol.kind == SymbolKind::Axis).then(|| coords.get(symbol.index as usize).cloned()).flatten()
        };
        expr.substitute(&replace, self.builder.ranges())
    }

    fn of_constant(&self, id: crate::graph::ConstantId, coords: &[Expr]) -> Option<Element> {
        let constant = &self.builder.graph().constants[id];
        let data = constant.fixed()?;
        let mut position = 0i64;
        for (coord, size) in coords.iter().zip(&constant.sizes) {
            position = position * size + coord.as_int().filter(|coord| (0..*size).contains(coord))?;
        }
        let size = constant.dtype.size();
        let start = usize::try_from(position).ok()? * size;
        of_bytes(constant.dtype, data.get(start..start + size)?)
    }

    fn is_within(&self, operand: ValueId, coords: &[Expr]) -> Option<bool> {
        let sizes = self.builder.shape(operand);
        let mut all = true;
        for (coord, size) in coords.iter().zip(&sizes) {
            let (coord, size) = (coord.as_int()?, size.as_int()?);
            all &= (0..size).contains(&coord);
        }
        Some(all)
    }

    fn gathered(&mut self, node: &Node, own: &[Coord], coords: &[Expr], depth: usize) -> Option<Vec<Expr>> {
        let sizes = self.builder.shape(node.inputs[0]);
        let mut found = Vec::new();
        for (coord, size) in own.iter().zip(&sizes) {
            found.push(match coord {
                Coord::Expr(expr) => self.placed(expr, coords),
                Coord::Indirect(k) => self.at(node.inputs[1 + k], coords, depth)?.integer()?.clone(),
                Coord::Wrapped(k) => {
                    let at = self.at(node.inputs[1 + k], coords, depth)?.integer()?.as_int()?;
                    if at < 0 { size + at } else { Expr::int(at) }
                }
            });
        }
        Some(found)
    }

    fn of_cat(&mut self, node: &Node, axis: usize, coords: &[Expr], depth: usize) -> Option<Element> {
        let mut at = coords[axis].as_int()?;
        for operand in &node.inputs {
            let extent = self.builder.shape(*operand)[axis].as_int()?;
            if at < extent {
                let mut own = coords.to_vec();
                own[axis] = Expr::int(at);
                return self.at(*operand, &own, depth);
            }
            at -= extent;
        }
        None
    }

    fn reduced(
        &mut self,
        node: &Node,
        op: ReduceOp,
        axes: &[usize],
        coords: &[Expr],
        depth: usize,
    ) -> Option<Element> {
        let step = match op {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Prod => BinaryOp::Mul,
            ReduceOp::Max => BinaryOp::Maximum,
            ReduceOp::Min => BinaryOp::Minimum,
            ReduceOp::Any => IntBinary::Or.into(),
            ReduceOp::All => IntBinary::And.into(),
            ReduceOp::Xor => IntBinary::Xor.into(),
            ReduceOp::ArgMax | ReduceOp::ArgMin => return None,
        };
        let is_float = self.builder.dtype(node.inputs[0]).is_float();
        let sizes = self.builder.shape(node.inputs[0]);
        let mut places = vec![Vec::new()];
        let mut outer = coords.iter();
        for (axis, size) in sizes.iter().enumerate() {
            let own: Vec<Expr> = if axes.contains(&axis) {
                (0..size.as_int().filter(|size| *size <= LARGEST)?).map(Expr::int).collect()
            } else {
                vec![outer.next()?.clone()]
            };
            let longer = |place: &Vec<Expr>| {
                let place = place.clone();
                own.iter().map(move |coord| [place.as_slice(), std::slice::from_ref(coord)].concat())
            };
            places = places.iter().flat_map(longer).collect();
            if i64::try_from(places.len()).ok()? > LARGEST {
                return None;
            }
        }
        let mut result: Option<Element> = None;
        for place in places {
            let next = self.at(node.inputs[0], &place, depth)?;
            result = Some(match result {
                None => next,
                Some(so_far) => self.binary(step, &so_far, &next, is_float)?,
            });
        }
        result.or(match op {
            ReduceOp::Sum => Some(Element::truth(false)),
            ReduceOp::Prod => Some(Element::truth(true)),
            ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::Xor
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin => None,
        })
    }

    fn cast(&self, x: &Element, dtype: DType) -> Option<Element> {
        match dtype.category() {
            Category::Float => Some(x.clone()),
            Category::Bool | Category::Int if x.number.is_some() => {
                let number = x.number?;
                let whole = number.trunc();
                let is_bool = dtype.category() == Category::Bool;
                (whole.abs() < 9e15)
                    .then(|| if is_bool { Element::truth(number != 0.0) } else { Element::real(whole) })
            }
            Category::Bool => {
                let top = self.decide(&x.top, Relation::Ne, &Expr::int(0))?;
                Some(Element::truth(top))
            }
            Category::Int => Some(Element::int(self.truncated(x)?)),
        }
    }

    /// Rounds towards zero.
    fn truncated(&self, x: &Element) -> Option<Expr> {
        if x.bottom == 1 {
            return Some(x.top.clone());
        }
        let ranges = self.builder.ranges();
        let (bottom, zero) = (Expr::int(x.bottom), Expr::int(0));
        if self.decide(&x.top, Relation::Ge, &zero)? {
            return Some(x.top.floor_div_in(&bottom, ranges));
        }
        Some(&zero - &(&zero - &x.top).floor_div_in(&bottom, ranges))
    }

    fn decide(&self, a: &Expr, relation: Relation, b: &Expr) -> Option<bool> {
        Condition::compare(a.clone(), relation, b.clone()).decide(self.builder.facts())
    }

    fn binary(&self, op: BinaryOp, a: &Element, b: &Element, is_float: bool) -> Option<Element> {
        if a.number.is_some() || b.number.is_some() {
            return of_numbers(op, a.value()?, b.value()?);
        }
        let ranges = self.builder.ranges();
        let constant = |x: &Element| x.integer().and_then(Expr::as_int);
        match op {
            BinaryOp::Add => Element::common(a, b).map(|(a, b, bottom)| Element::fraction(&a + &b, bottom)),
            BinaryOp::Sub => Element::common(a, b).map(|(a, b, bottom)| Element::fraction(&a - &b, bottom)),
            BinaryOp::Mul => {
                let bottom = a.bottom.checked_mul(b.bottom).filter(|n| *n <= LARGEST_DENOMINATOR)?;
                Some(reduced_fraction(&a.top * &b.top, bottom))
            }
            BinaryOp::FloorDiv | BinaryOp::TruncDiv => {
                let divisor = b.integer()?;
                let is_positive = self.decide(divisor, Relation::Gt, &Expr::int(0))?;
                let is_exact =
                    op == BinaryOp::FloorDiv || self.decide(a.integer()?, Relation::Ge, &Expr::int(0))?;
                (is_positive && is_exact)
                    .then(|| a.integer().map(|a| Element::int(a.floor_div_in(divisor, ranges))))?
            }
            BinaryOp::Remainder | BinaryOp::Fmod => {
                let divisor = b.integer()?;
                let is_positive = self.decide(divisor, Relation::Gt, &Expr::int(0))?;
                let is_exact =
                    op == BinaryOp::Remainder || self.decide(a.integer()?, Relation::Ge, &Expr::int(0))?;
                (is_positive && is_exact)
                    .then(|| a.integer().map(|a| Element::int(a.modulo_in(divisor, ranges))))?
            }
            BinaryOp::Pow => {
                let (a, b) = (constant(a)?, constant(b)?);
                Some(Element::int(Expr::int(a.checked_pow(u32::try_from(b).ok()?)?)))
            }
            BinaryOp::Maximum | BinaryOp::Fmax => {
                let (a, b, bottom) = Element::common(a, b)?;
                Some(Element::fraction(a.maximum_in(&b, ranges), bottom))
            }
            BinaryOp::Minimum | BinaryOp::Fmin => {
                let (a, b, bottom) = Element::common(a, b)?;
                Some(Element::fraction(a.minimum_in(&b, ranges), bottom))
            }
            BinaryOp::Compare(relation) => {
                let (a, b, _) = Element::common(a, b)?;
                self.decide(&a, relation, &b).map(Element::truth)
            }
            BinaryOp::Int(op) => of_bits(op, constant(a)?, constant(b)?),
            BinaryOp::Float(FloatBinary::Div) if is_float => {
                let divisor = b.top.as_int().filter(|divisor| *divisor > 0)?;
                let bottom = a.bottom.checked_mul(divisor).filter(|n| *n <= LARGEST_DENOMINATOR)?;
                Some(reduced_fraction(&a.top * b.bottom, bottom))
            }
            BinaryOp::Float(_) | BinaryOp::Special(_) => None,
        }
    }
}
