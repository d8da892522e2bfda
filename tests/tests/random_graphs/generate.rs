//! Makes small graphs of every operator, from a seed, and says how exactly their outputs are determined.
//!
//! Indices are made valid by construction, and nothing discontinuous is applied to what rounding may change.

mod elementwise;

use crate::accuracy::Accuracy;
use aoti_compiler::dtype::{Category, DType};
use aoti_compiler::graph::{
    BinaryOp, Builder, Constant, Graph, InputRole, OutputRole, Scalar, SymbolInfo, SymbolSource, TensorType,
    ValueId,
};
use aoti_compiler::symbolic::{Expr, Interval, Symbol, SymbolKind};
use aoti_tests::rng::Rng;

/// Tensors have at most this many elements in a trial.
const MAX_ELEMENTS: i64 = 1500;
/// The trial values of size symbols: of the first, the second, ...; in each trial.
pub(crate) const TRIALS: [[i64; 2]; 2] = [[5, 3], [1, 18]];
/// The largest of them.
const MAX_TRIAL: i64 = 18;
const DATA_SIZE: i64 = 6;

/// A graph and how its outputs are to be compared.
pub(crate) struct Generated {
    /// The graph.
    pub(crate) graph: Graph,
    /// One for each output.
    pub(crate) outputs: Vec<Accuracy>,
    /// Whether inputs hold infinities and NaN.
    pub(crate) wild: bool,
}

/// A value to build on.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    pub(crate) value: ValueId,
    pub(crate) accuracy: Accuracy,
}

/// A graph under construction.
pub(crate) struct Generator {
    pub(crate) rng: Rng,
    pub(crate) b: Builder,
    pub(crate) items: Vec<Item>,
    /// Inputs hold infinities and NaN, so that floats are not made into integers.
    wild: bool,
    n_size_symbols: usize,
}

/// What an attempt to add a node gives: nothing where the choice does not fit.
pub(crate) type Made = Option<()>;

/// The graph of a seed.
pub(crate) fn generate(seed: u64) -> Generated {
    let (mut rng, b) = (Rng::new(seed), Builder::new("random"));
    let wild = rng.one_in(6);
    let mut g = Generator { rng, b, items: vec![], wild, n_size_symbols: 0 };
    let n_inputs = 1 + g.rng.below(4);
    for number in 0..n_inputs {
        g.input(number);
    }
    for _ in 0..g.rng.below(3) {
        g.constant();
    }
    let n_nodes = 2 + g.rng.below(11);
    for _ in 0..n_nodes {
        // Several tries, since a choice may not fit the values there are.
        for _ in 0..4 {
            if g.node().is_some() {
                break;
            }
        }
    }
    g.finish(n_inputs)
}

impl Generator {
    fn input(&mut self, number: usize) {
        let dtype = self.dtype();
        let rank = self.rng.below(5).min(4);
        let mut shape = Vec::new();
        for axis in 0..rank {
            let room = MAX_ELEMENTS / 4 / self.elements(&shape).max(1);
            let symbol =
                if room >= MAX_TRIAL && self.rng.one_in(3) { self.symbol(number, axis) } else { None };
            let size = symbol.unwrap_or_else(|| self.size());
            shape.push(if size.as_int().is_some_and(|size| size > room) { Expr::int(1) } else { size });
        }
        let fixed = shape.iter().all(|size| size.as_int().is_some());
        let ty = TensorType { dtype, shape };
        let role = if fixed && self.rng.one_in(10) {
            let constant = self.literal(dtype, &ty.shape);
            InputRole::State(self.b.add_constant(constant))
        } else {
            InputRole::User
        };
        let value = self.b.input(&format!("x{number}"), ty, role);
        self.items.push(Item { value, accuracy: given(dtype) });
    }

    /// A new size symbol for an axis of an input, or one that is there.
    fn symbol(&mut self, input: usize, axis: usize) -> Option<Expr> {
        if self.n_size_symbols > 0 && self.rng.one_in(2) {
            return Some(Expr::sym(Symbol::size(self.rng.below(self.n_size_symbols) as u32)));
        }
        if self.n_size_symbols == TRIALS[0].len() {
            return None;
        }
        self.n_size_symbols += 1;
        let range = Interval::new(self.rng.between(0, 1), self.rng.between(18, 70));
        let source = SymbolSource::InputDim { input, axis };
        Some(Expr::sym(self.b.symbol(SymbolInfo {
            name: format!("n{input}_{axis}"),
            range,
            source,
            most: None,
        })))
    }

    pub(crate) fn constant(&mut self) {
        let dtype = self.dtype();
        let shape: Vec<Expr> = (0..self.rng.below(4)).map(|_| self.size()).collect();
        if self.elements(&shape) > MAX_ELEMENTS / 4 {
            return;
        }
        let constant = self.literal(dtype, &shape);
        let value = self.b.constant(constant).expect("the data fit the sizes");
        self.items.push(Item { value, accuracy: given(dtype) });
    }

    /// Random data of fixed sizes.
    pub(crate) fn literal(&mut self, dtype: DType, shape: &[Expr]) -> Constant {
        let sizes: Vec<i64> = shape.iter().map(|size| size.as_int().expect("fixed sizes")).collect();
        let count = sizes.iter().product::<i64>();
        let data: Vec<u8> = (0..count).flat_map(|_| element(&mut self.rng, dtype)).collect();
        Constant::new("", dtype, sizes, data)
    }

    pub(crate) fn dtype(&mut self) -> DType {
        use DType::*;
        self.rng.pick(&[
            Bool, Bool, U8, I8, I16, I32, I64, I64, U16, U32, U64, F16, Bf16, F32, F32, F32, F32, F32, F64,
        ])
    }

    fn size(&mut self) -> Expr {
        Expr::int(self.rng.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33]))
    }

    /// The largest number of elements in a trial.
    pub(crate) fn elements(&self, shape: &[Expr]) -> i64 {
        (0..TRIALS.len()).map(|trial| shape.iter().map(|size| at(size, trial)).product()).max().unwrap_or(0)
    }

    /// Whether a size is at least 1 in every trial.
    pub(crate) fn is_positive(&self, size: &Expr) -> bool {
        // Symbols from data come after those of inputs.
        let positive = |sizes: &[i64], data| size_at(size, &sizes[..self.n_size_symbols], data) > 0;
        TRIALS.iter().all(|sizes| positive(sizes, 0) && positive(sizes, DATA_SIZE))
    }

    /// Takes a value into the pool, if it is not too large.
    pub(crate) fn add(&mut self, value: ValueId, accuracy: Accuracy) -> Made {
        if self.elements(&self.b.shape(value)) <= MAX_ELEMENTS {
            self.items.push(Item { value, accuracy });
        }
        Some(())
    }

    /// A value that can be computed with, rather a recent one, that satisfies a condition.
    pub(crate) fn any(&mut self, fits: impl Fn(&TensorType, Accuracy) -> bool) -> Option<Item> {
        let fitting: Vec<Item> = self
            .items
            .iter()
            .filter(|item| {
                let ty = self.b.ty(item.value);
                item.accuracy.is_usable(ty.dtype) && fits(ty, item.accuracy)
            })
            .copied()
            .collect();
        let recent = fitting.len().saturating_sub(3);
        let from = if self.rng.one_in(2) { recent } else { 0 };
        fitting.get(from + self.rng.below(fitting.len() - from)).copied()
    }

    fn node(&mut self) -> Made {
        match self.rng.below(33) {
            0..=1 => self.unary(),
            2..=4 => self.smooth(),
            5 => self.special(),
            6..=9 => self.binary(),
            10 => self.select(),
            11..=12 => self.cast(),
            13..=16 => self.view(),
            17 => self.pad(),
            18 => self.gather(),
            19 => self.scatter(),
            20 => self.cat(),
            21..=23 => self.reduce(),
            24 => self.scan(),
            25 => self.sort(),
            26 => self.matmul(),
            27 => self.conv(),
            28 => self.control(),
            29..=31 => self.indexed(),
            _ => self.source(),
        }
    }

    /// A second operand of the type of `x` whose shape broadcasts with it.
    pub(crate) fn operand(&mut self, x: Item, exact: bool) -> Option<Item> {
        let dtype = self.b.dtype(x.value);
        if self.rng.one_in(4) {
            let number = self.rng.between(-3, 3);
            let number =
                if dtype == DType::U8 || dtype == DType::Bool { number.abs().min(1) } else { number };
            let value = self.b.scalar(number, dtype);
            return Some(Item { value, accuracy: Accuracy::exact(3.0, 0) });
        }
        let shape = self.b.shape(x.value);
        let fits: Vec<bool> = self
            .items
            .iter()
            .map(|item| self.b.sure_broadcast(&[shape.clone(), self.b.shape(item.value)]).is_some())
            .collect();
        let allowed: Vec<ValueId> =
            self.items.iter().zip(&fits).filter(|(_, fits)| **fits).map(|(item, _)| item.value).collect();
        let values = allowed.clone();
        let types: Vec<TensorType> = values.iter().map(|value| self.b.ty(*value).clone()).collect();
        self.any(|ty, accuracy| ty.dtype == dtype && types.contains(ty) && (accuracy.is_exact() || !exact))
    }

    /// Whether a value broadcasts to a shape whatever the sizes are: the trials know of no condition of the program.
    pub(crate) fn expands(&self, x: ValueId, shape: &[Expr]) -> bool {
        self.b.sure_broadcast(&[shape.to_vec(), self.b.shape(x)]).as_deref() == Some(shape)
    }

    /// Values without operands.
    fn source(&mut self) -> Made {
        let rank = self.rng.below(4);
        let like = self.any(|ty, _| ty.rank() > 0)?;
        let mut shape = self.b.shape(like.value);
        shape.truncate(rank);
        match self.rng.below(4) {
            0 => {
                self.constant();
                Some(())
            }
            1 => {
                let dtype = self.dtype();
                let number = self.rng.between(0, 1);
                let value = self.b.full(number, dtype, &shape);
                self.add(value, Accuracy::exact(1.0, 0))
            }
            2 => self.read(),
            _ => {
                let mut expr = Expr::int(self.rng.between(-2, 2));
                for axis in 0..shape.len() {
                    expr = &expr + &(&Expr::axis(axis) * self.rng.between(-2, 3));
                }
                let value = self.b.index(expr, &shape);
                self.add(value, Accuracy::exact(1e4, 0))
            }
        }
    }

    /// A size read from data, and a tensor of that size.
    fn read(&mut self) -> Made {
        let x = self.any(|ty, _| ty.dtype.category() == Category::Int)?;
        let axes: Vec<usize> = (0..self.b.rank(x.value)).collect();
        let sum = self.b.reduce(aoti_compiler::graph::ReduceOp::Sum, x.value, &axes, false).ok()?;
        let wide = self.b.cast(sum, DType::I64);
        let rest = self.b.binary_scalar(BinaryOp::Remainder, wide, DATA_SIZE).ok()?;
        let least = self.rng.between(0, 1);
        let size = self.b.binary_scalar(BinaryOp::Add, rest, least).ok()?;
        // Of half of them nobody says how large they get: their memory is allocated during the run.
        let range = Interval::new(least, if self.rng.one_in(2) { i64::MAX } else { DATA_SIZE });
        let info = SymbolInfo { name: "data".to_owned(), range, source: SymbolSource::Data, most: None };
        let symbol = self.b.symbol(info);
        self.b.read(size, symbol).ok()?;
        let value = self.b.index(&Expr::axis(0) * 3, &[Expr::sym(symbol)]);
        self.add(value, Accuracy::exact(100.0, 0))
    }

    fn is_from_data(&self, size: &Expr) -> bool {
        let mut symbols = std::collections::BTreeSet::new();
        size.collect_symbols(&mut symbols);
        let sources = &self.b.graph().symbols;
        symbols.iter().any(|symbol| sources[symbol.index as usize].source == SymbolSource::Data)
    }

    /// What a state becomes: a part of it changes, or it moves on by one, or every element changes, or all is new.
    fn next_state(&mut self, old: ValueId) -> ValueId {
        let ty = self.b.ty(old).clone();
        let Some(item) = self.items.iter().find(|item| item.value == old).copied() else { return old };
        let made = self.items.len();
        let done = match self.rng.below(4) {
            0 if ty.rank() > 0 => self.scatter_into(item),
            1 if ty.rank() > 0 => self.move_on(item),
            2 => self.with_another(item),
            _ => None,
        };
        let fits = |accuracy: Accuracy| accuracy.is_exact() && accuracy.size < 100.0;
        if let Some(last) = done.and(self.items[made..].last()).copied()
            && *self.b.ty(last.value) == ty
            && fits(last.accuracy)
        {
            return last.value;
        }
        let next = self.any(|other, accuracy| *other == ty && fits(accuracy));
        next.map_or(old, |item| item.value)
    }

    /// All but the first of an axis, and something new.
    fn move_on(&mut self, x: Item) -> Made {
        let ty = self.b.ty(x.value).clone();
        let axis = self.rng.below(ty.rank());
        let new = self.any(|other, accuracy| *other == ty && accuracy.is_exact())?;
        let one = Expr::int(1);
        let rest = &ty.shape[axis] - &one;
        if rest.as_int()? < 1 {
            return None;
        }
        let kept = self.b.slice(x.value, axis, &one, &rest, 1).ok()?;
        let added = self.b.slice(new.value, axis, &Expr::int(0), &one, 1).ok()?;
        let value = self.b.cat(&[kept, added], axis).ok()?;
        self.add(value, x.accuracy.either(new.accuracy))
    }

    /// The larger of each element and another.
    fn with_another(&mut self, x: Item) -> Made {
        let ty = self.b.ty(x.value).clone();
        let other = self.any(|own, accuracy| *own == ty && accuracy.is_exact())?;
        let value = self.b.binary(BinaryOp::Maximum, x.value, other.value).ok()?;
        self.add(value, x.accuracy.either(other.accuracy))
    }

    fn finish(mut self, n_inputs: usize) -> Generated {
        let mut states = Vec::new();
        for input in 0..n_inputs {
            let Some(old) = self.b.graph().inputs.get(input).cloned() else { continue };
            if old.role != InputRole::User {
                states.push((input, self.next_state(old.value)));
            }
        }
        let mut outputs = Vec::new();
        let n_outputs = 1 + self.rng.below(4);
        for number in 0..n_outputs {
            let back = self.rng.below(4).min(self.items.len() - 1);
            let any = self.rng.below(self.items.len());
            let chosen = if self.rng.one_in(4) { any } else { self.items.len() - 1 - back };
            let item = self.items[chosen];
            // The caller makes the outputs before a run, so their sizes cannot come from data.
            if self.b.shape(item.value).iter().any(|size| self.is_from_data(size)) {
                continue;
            }
            self.b.output(&format!("y{number}"), item.value, OutputRole::User);
            outputs.push(item.accuracy);
        }
        for (input, next) in states {
            self.b.output(&format!("s{input}"), next, OutputRole::State(input));
        }
        Generated { graph: self.b.finish(), outputs, wild: self.wild }
    }
}

/// A size in a trial; sizes read from data are taken at their largest.
pub(crate) fn at(size: &Expr, trial: usize) -> i64 {
    size_at(size, &TRIALS[trial], DATA_SIZE)
}

fn size_at(size: &Expr, sizes: &[i64], data: i64) -> i64 {
    let value_of = |symbol: Symbol| match symbol.kind {
        SymbolKind::Size => sizes.get(symbol.index as usize).copied().or(Some(data)),
        SymbolKind::Axis => None,
    };
    size.evaluate(&value_of).unwrap_or(MAX_ELEMENTS + 1).max(0)
}

/// Of inputs and constants.
fn given(dtype: DType) -> Accuracy {
    match dtype.category() {
        Category::Bool => Accuracy::exact(1.0, 0),
        Category::Int => Accuracy::exact(9.0, 0),
        Category::Float => Accuracy::exact(2.0, 2),
    }
}

/// A random element: multiples of 1/4 in -2 .. 2, integers in -9 .. 9.
pub(crate) fn element(rng: &mut Rng, dtype: DType) -> Vec<u8> {
    let float = rng.between(-8, 8) as f64 / 4.0;
    let int = rng.between(-9, 9);
    encode(int, float, dtype)
}

/// The bytes of a number: `float` of a floating-point type, else `int`.
fn encode(int: i64, float: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![(int & 1) as u8],
        DType::U8 => vec![int.unsigned_abs() as u8],
        DType::I8 => (int as i8).to_le_bytes().to_vec(),
        DType::I16 => (int as i16).to_le_bytes().to_vec(),
        DType::I32 => (int as i32).to_le_bytes().to_vec(),
        DType::I64 => int.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(float).to_le_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(float).to_le_bytes().to_vec(),
        DType::F32 => (float as f32).to_le_bytes().to_vec(),
        DType::F64 => float.to_le_bytes().to_vec(),
        DType::U16 => (int.unsigned_abs() as u16).to_le_bytes().to_vec(),
        DType::U32 => (int.unsigned_abs() as u32).to_le_bytes().to_vec(),
        DType::U64 => int.unsigned_abs().to_le_bytes().to_vec(),
        DType::F8(format) => vec![format.from_f64(float)],
    }
}

/// As [`element`], but one in six floating-point numbers is infinite, NaN or a negative zero.
pub(crate) fn wild_element(rng: &mut Rng, dtype: DType) -> Vec<u8> {
    if !dtype.is_float() || !rng.one_in(6) {
        return element(rng, dtype);
    }
    let number = rng.pick(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0]);
    encode(0, number, dtype)
}

/// A number of the type that every type holds.
pub(crate) fn fill(rng: &mut Rng) -> Scalar {
    Scalar::from(rng.between(0, 1))
}
