//! One stage at many positions at once: each term is a tensor with an element for each position.

use super::Machine;
use super::nest::Stages;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine};
use crate::interpret::error::EvalError;
use crate::interpret::index::{IndexFn, Symbols, advance};
use crate::interpret::tensor::Tensor;
use crate::interpret::{binary, convert, movement, unary};
use crate::loops::{Access, Axis, BufferId, Effect, Guard, Stage, Storage, Term, TermId, TypedTerm};
use crate::symbolic::{Expr, Symbol};
use std::collections::BTreeMap;
use std::ops::Range;

/// Positions of axes, in order. A coordinate is found by its axis symbol's number.
pub(super) struct Positions {
    rank: usize,
    coordinates: Vec<Vec<usize>>,
    /// Which of the outer positions each belongs to.
    outer: Vec<usize>,
}

impl Positions {
    /// Every position of some axes.
    pub(super) fn all(axes: &[Axis], symbols: &Symbols) -> Result<Positions, EvalError> {
        let start = Positions { rank: 0, coordinates: vec![vec![]], outer: vec![0] };
        let mut all = start.with_inner(axes, symbols)?;
        all.outer = (0..all.count()).collect();
        Ok(all)
    }

    /// Some of the positions.
    pub(super) fn part(&self, range: Range<usize>) -> Positions {
        let coordinates = self.coordinates[range.clone()].to_vec();
        Positions { rank: self.rank, coordinates, outer: (0..range.len()).collect() }
    }

    /// Each position with every position of inner axes.
    pub(super) fn with_inner(&self, axes: &[Axis], symbols: &Symbols) -> Result<Positions, EvalError> {
        let extents: Vec<Expr> = axes.iter().map(|axis| axis.extent.clone()).collect();
        let sizes = symbols.sizes(&extents)?;
        let places: Vec<usize> = axes.iter().map(|axis| axis.symbol.index as usize).collect();
        let rank = places.iter().map(|place| place + 1).max().unwrap_or(0).max(self.rank);
        let (mut coordinates, mut outer) = (Vec::new(), Vec::new());
        if sizes.contains(&0) {
            return Ok(Positions { rank, coordinates, outer });
        }
        for (number, position) in self.coordinates.iter().enumerate() {
            let mut inner = vec![0; sizes.len()];
            loop {
                let mut whole = position.clone();
                whole.resize(rank, 0);
                for (place, value) in places.iter().zip(&inner) {
                    whole[*place] = *value;
                }
                coordinates.push(whole);
                outer.push(number);
                if !advance(&mut inner, &sizes) {
                    break;
                }
            }
        }
        Ok(Positions { rank, coordinates, outer })
    }

    pub(super) fn count(&self) -> usize {
        self.coordinates.len()
    }

    /// Inner positions of each.
    pub(super) fn inner_count(&self, axes: &[Axis], symbols: &Symbols) -> Result<usize, EvalError> {
        let extents: Vec<Expr> = axes.iter().map(|axis| axis.extent.clone()).collect();
        Ok(symbols.sizes(&extents)?.iter().product())
    }

    /// The coordinates along one axis.
    pub(super) fn along(&self, axis: Symbol) -> Vec<i64> {
        self.coordinates.iter().map(|position| position[axis.index as usize] as i64).collect()
    }

    /// The values of an expression.
    pub(super) fn values(&self, expr: &Expr, symbols: &Symbols) -> Result<Vec<i64>, EvalError> {
        let function = IndexFn::new(expr, self.rank, symbols)?;
        let mut stack = Vec::new();
        self.coordinates.iter().map(|position| function.at(position, &mut stack)).collect()
    }
}

/// What a stage can use beside its own terms, and what it leaves.
#[derive(Default)]
pub(super) struct Values {
    /// The sums of a contraction.
    sums: Option<Tensor>,
    /// Terms of this stage.
    pub(super) terms: BTreeMap<TermId, Tensor>,
    /// Terms of earlier stages.
    pub(super) stages: Stages,
    /// What accumulators were fed in this stage.
    pub(super) fed: BTreeMap<usize, Tensor>,
    /// Finished accumulators.
    pub(super) results: BTreeMap<usize, Tensor>,
}

impl Values {
    pub(super) fn of_sums(sums: Tensor) -> Values {
        Values { sums: Some(sums), ..Values::default() }
    }
}

fn malformed(what: &str) -> EvalError {
    EvalError::Malformed(what.to_owned())
}

/// The same elements in one dimension.
pub(super) fn flat(x: &Tensor) -> Tensor {
    Tensor::new(x.dtype(), vec![x.numel()], x.bytes().clone()).expect("as many elements")
}

/// A value for each outer position, repeated for its inner positions.
fn spread(x: &Tensor, positions: &Positions) -> Tensor {
    let width = x.dtype().size();
    let data: Vec<u8> =
        positions.outer.iter().flat_map(|at| x.bytes()[at * width..(at + 1) * width].to_vec()).collect();
    Tensor::new(x.dtype(), vec![positions.count()], data).expect("an element for each position")
}

impl Machine<'_> {
    /// Runs one stage at all positions.
    pub(super) fn stage(
        &mut self,
        stage: &Stage,
        positions: &Positions,
        values: &mut Values,
    ) -> Result<(), EvalError> {
        values.terms.clear();
        for (id, typed) in stage.terms.iter().enumerate() {
            let value = self.term(typed, positions, values)?;
            let value = if value.dtype() == typed.dtype { value } else { convert::cast(&value, typed.dtype) };
            values.terms.insert(id, value);
        }
        for effect in &stage.effects {
            match effect {
                Effect::Accumulate { accumulator, value } => {
                    let value = term(values, *value)?.clone();
                    values.fed.insert(*accumulator, value);
                }
                Effect::Store { access, value, combine } => {
                    self.store(access, term(values, *value)?, *combine, positions, values)?;
                }
            }
        }
        Ok(())
    }

    fn term(&self, typed: &TypedTerm, positions: &Positions, values: &Values) -> Result<Tensor, EvalError> {
        let of = |id: &TermId| term(values, *id);
        let count = vec![positions.count()];
        Ok(match &typed.term {
            Term::Literal(value) => movement::full(*value, typed.dtype, count),
            Term::Index(expr) => Tensor::from_i64(&count, &positions.values(expr, &self.symbols)?),
            Term::Load { access, guards, fill } => {
                let inside = self.inside(guards, positions)?;
                let offsets = self.offsets(access, positions, values, &inside)?;
                let fill = movement::full(*fill, self.program.buffers[access.buffer].dtype, vec![1]);
                let from = (access.buffer, self.elements(access.buffer, positions)?);
                self.memory.load(self.program, from, &offsets, fill.bytes())?
            }
            Term::Unary(op, a) => unary::unary(*op, of(a)?)?,
            Term::Binary(op, a, b) => binary::binary(*op, of(a)?, of(b)?)?,
            Term::Select(c, a, b) => movement::select(of(c)?, of(a)?, of(b)?),
            Term::Cast(a) => convert::cast(of(a)?, typed.dtype),
            Term::Inside(guards) => Tensor::from_bool(&count, &self.inside(guards, positions)?),
            Term::CheckIndex { index, size, wraps, .. } => self.checked(of(index)?, size, *wraps)?,
            Term::Accumulated(accumulator) => {
                let result = values.results.get(accumulator);
                spread(result.ok_or_else(|| malformed("an accumulator is not finished"))?, positions)
            }
            Term::Earlier { stage, term } => {
                let earlier = values.stages.get(*stage).and_then(|terms| terms.get(term));
                spread(earlier.ok_or_else(|| malformed("an earlier term does not exist"))?, positions)
            }
            Term::Sum => values.sums.clone().ok_or_else(|| malformed("there are no sums here"))?,
        })
    }

    fn checked(&self, index: &Tensor, size: &Expr, wraps: bool) -> Result<Tensor, EvalError> {
        let size = self.symbols.value(size)?;
        let indices = index.to_i64().ok_or_else(|| malformed("an index is not an integer"))?;
        let checked: Result<Vec<i64>, EvalError> = indices
            .into_iter()
            .map(|index| {
                let at = if wraps && index < 0 { index + size } else { index };
                let size = usize::try_from(size).unwrap_or(0);
                let fits = usize::try_from(at).is_ok_and(|at| at < size);
                if fits { Ok(at) } else { Err(EvalError::IndexOutOfRange { index, size }) }
            })
            .collect();
        Ok(Tensor::from_i64(index.sizes(), &checked?))
    }

    fn inside(&self, guards: &[Guard], positions: &Positions) -> Result<Vec<bool>, EvalError> {
        let mut inside = vec![true; positions.count()];
        for guard in guards {
            let at = positions.values(&guard.coordinate, &self.symbols)?;
            let size = positions.values(&guard.size, &self.symbols)?;
            for (held, (at, size)) in inside.iter_mut().zip(at.into_iter().zip(size)) {
                *held &= (0..size).contains(&at);
            }
        }
        Ok(inside)
    }

    /// Element offsets of an access where it is made, without the rows of other positions.
    fn offsets(
        &self,
        access: &Access,
        positions: &Positions,
        values: &Values,
        made: &[bool],
    ) -> Result<Vec<Option<i64>>, EvalError> {
        let mut offsets = positions.values(&access.offset, &self.symbols)?;
        for (id, stride) in &access.indirect {
            let strides = positions.values(stride, &self.symbols)?;
            let index = term(values, *id)?.to_i64().ok_or_else(|| malformed("an index is not an integer"))?;
            for (offset, (index, stride)) in offsets.iter_mut().zip(index.into_iter().zip(strides)) {
                *offset += index * stride;
            }
        }
        if let Some(row) = self.row(access.buffer)? {
            for ((offset, outer), made) in offsets.iter_mut().zip(&positions.outer).zip(made) {
                // A row has neighbours only here, so what leaves it must not reach them.
                if *made && !(0..row as i64).contains(offset) {
                    return Err(EvalError::Malformed(format!("element {offset} of a row of {row}")));
                }
                *offset += (outer * row) as i64;
            }
        }
        Ok(offsets.into_iter().zip(made).map(|(offset, made)| made.then_some(offset)).collect())
    }

    /// Elements of one row, where a buffer is kept by rows.
    fn row(&self, buffer: BufferId) -> Result<Option<usize>, EvalError> {
        let own = &self.program.buffers[buffer];
        match own.storage {
            Storage::Local { outer } => Ok(Some(self.symbols.sizes(&own.shape[outer..])?.iter().product())),
            Storage::Input(_)
            | Storage::Output(_)
            | Storage::State(_)
            | Storage::Constant(_)
            | Storage::Generator
            | Storage::Temporary => Ok(None),
        }
    }

    /// Elements that a buffer has here.
    fn elements(&self, buffer: BufferId, positions: &Positions) -> Result<usize, EvalError> {
        match self.row(buffer)? {
            Some(row) => Ok(row * positions.outer.last().map_or(0, |last| last + 1)),
            None => Ok(self.symbols.sizes(&self.program.buffers[buffer].shape)?.iter().product()),
        }
    }

    fn store(
        &mut self,
        access: &Access,
        value: &Tensor,
        combine: Combine,
        positions: &Positions,
        values: &Values,
    ) -> Result<(), EvalError> {
        let dtype = self.program.buffers[access.buffer].dtype;
        let value = if value.dtype() == dtype { value.clone() } else { convert::cast(value, dtype) };
        let everywhere = vec![true; positions.count()];
        let offsets: Vec<i64> =
            self.offsets(access, positions, values, &everywhere)?.into_iter().flatten().collect();
        let to = (access.buffer, self.elements(access.buffer, positions)?);
        self.memory.store(to, &offsets, &value, &mut |old, new| combined(combine, dtype, old, new))
    }
}

fn term(values: &Values, id: TermId) -> Result<&Tensor, EvalError> {
    values.terms.get(&id).ok_or_else(|| malformed("a term does not exist"))
}

fn combined(combine: Combine, dtype: DType, old: &[u8], new: &[u8]) -> Result<Vec<u8>, EvalError> {
    let op = match combine {
        Combine::Set => return Ok(new.to_vec()),
        Combine::Add => BinaryOp::Add,
        Combine::Mul => BinaryOp::Mul,
        Combine::Max => BinaryOp::Maximum,
        Combine::Min => BinaryOp::Minimum,
    };
    let one = |bytes: &[u8]| Tensor::new(dtype, vec![1], bytes.to_vec()).expect("one element");
    Ok(binary::binary(op, &one(old), &one(new))?.bytes().to_vec())
}
