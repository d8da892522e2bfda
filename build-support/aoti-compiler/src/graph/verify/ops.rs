//! The rules of each operator: types, shapes, parameters.

use super::Ctx;
use crate::dtype::{Category, DType};
use crate::fourier::{Fourier, LONGEST, Plan};
use crate::graph::{
    BinaryOp, Collective, Constant, Conv, Coord, ExternCall, Graph, Node, Op, Recurrent, ReduceOp, Routine,
    Scalar, SymbolSource, TensorType, UnaryOp,
};
use crate::symbolic::{Expr, Symbol};

type Check = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition { return Err(format!($($message)+)); }
    };
}

/// Whether a type is one element of a category.
pub(super) fn is_one(ty: &TensorType, category: Category) -> bool {
    ty.dtype.category() == category && ty.numel().is(1)
}

/// Whether a constant has exactly this type.
pub(super) fn is_type_of(constant: &Constant, ty: &TensorType) -> bool {
    constant.dtype == ty.dtype
        && constant.sizes.len() == ty.rank()
        && constant.sizes.iter().zip(&ty.shape).all(|(size, expr)| expr.is(*size))
}

impl Ctx<'_> {
    /// Checks one node, whose values exist; bodies are checked inside elsewhere.
    pub(super) fn op(&self, graph: &Graph, node: &Node) -> Check {
        let ins: Vec<&TensorType> = node.inputs.iter().map(|value| graph.ty(*value)).collect();
        let outs: Vec<&TensorType> = node.outputs.iter().map(|value| graph.ty(*value)).collect();
        match (&node.op, ins.as_slice(), outs.as_slice()) {
            (Op::Constant(id), [], [out]) => {
                let constant = graph.constants.get(*id);
                ensure!(
                    constant.is_some_and(|c| is_type_of(c, out)),
                    "the constant is missing or of another type"
                );
                Ok(())
            }
            (Op::Full(value), [], [out]) => fits(*value, out.dtype),
            (Op::Index(expr), [], [out]) => {
                ensure!(out.dtype == DType::I64, "the result is {}, not i64", out.dtype);
                self.mentions(expr, out.rank(), true)
            }
            (Op::Unary(op), [x], [out]) => self.unary(*op, x, out),
            (Op::Binary(op), [a, b], [out]) => self.binary(*op, a, b, out),
            (Op::Select, [condition, a, b], [out]) => {
                ensure!(condition.dtype == DType::Bool, "the condition is {}", condition.dtype);
                ensure!(self.same_shape(&condition.shape, &out.shape), "the condition has another shape");
                ensure!(self.same_type(a, out) && self.same_type(b, out), "a value has another type");
                Ok(())
            }
            (Op::Cast, [x], [out]) => self.shapes(x, out),
            (Op::View(coords), [x], [out]) => {
                ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
                self.coordinates(coords.iter(), coords.len(), x, out)
            }
            (Op::Pad { coords, fill }, [x], [out]) => {
                ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
                ensure!(coords.len() == x.rank(), "{} coordinates for {} axes", coords.len(), x.rank());
                coords.iter().try_for_each(|coord| self.mentions(coord, out.rank(), true))?;
                fits(*fill, out.dtype)
            }
            (Op::Gather(coords), [x, indices @ ..], [out]) => {
                ensure!(x.dtype == out.dtype, "the result is {}, the operand {}", out.dtype, x.dtype);
                self.indirect(coords, x, indices, out)
            }
            (Op::Scatter { coords, .. }, [base, updates, indices @ ..], [out]) => {
                ensure!(self.same_type(base, out), "the result is {out}, the base {base}");
                ensure!(updates.dtype == base.dtype, "updates are {}", updates.dtype);
                self.indirect(coords, base, indices, updates)
            }
            (Op::Cat { axis }, [first, ..], [out]) => self.cat(*axis, first, &ins, out),
            (Op::Reduce { op, axes }, [x], [out]) => self.reduce(*op, axes, x, out),
            (Op::Scan { op, axis }, [x], [values, indices @ ..]) => {
                ensure!(*axis < x.rank(), "axis {axis} of {}", x.rank());
                ensure!(self.same_type(values, x), "the result is {values}, the operand {x}");
                ensure!(indices.len() == usize::from(op.has_indices()), "{} results", outs.len());
                indices.iter().try_for_each(|indices| self.index_like(indices, x))
            }
            (Op::Sort { axis, kept, .. }, [x], [y, indices]) => self.sort(*axis, *kept, x, [y, indices]),
            (Op::NthElement { axis, .. }, [x, ranks], [values, indices]) => {
                self.nth_element(*axis, x, ranks, [values, indices])
            }
            (Op::SearchSorted { .. }, [sorted, values], [out]) => self.search_sorted(sorted, values, out),
            (Op::Routine(routine), operands, outs) => self.routine(*routine, operands, outs),
            (Op::Fourier(fourier), [x, roots], [out]) => self.fourier(fourier, x, roots, out),
            (Op::Recurrent(own), operands, outs) => self.recurrent(own, operands, outs),
            (Op::Extern(call), operands, outs) => self.extern_call(call, operands.len(), outs.len()),
            (Op::Collective(own), [x], [out]) => self.collective(own, x, out),
            (Op::MatMul, [a, b], [out]) => self.matmul(a, b, out),
            (Op::Conv(conv), [x, weight], [out]) => self.conv(conv, x, weight, out),
            (Op::Read(symbol), [x], []) => self.read(*symbol, x),
            (Op::Assert(_), [x], []) => {
                ensure!(is_one(x, Category::Bool), "the condition is {x}, not one boolean");
                Ok(())
            }
            (Op::Require(guard), [], []) => self.guard(guard),
            (Op::Cond { then, otherwise }, [predicate, operands @ ..], outs) => {
                ensure!(is_one(predicate, Category::Bool), "the predicate is {predicate}, not one boolean");
                self.body(then, operands, outs)?;
                self.body(otherwise, operands, outs)
            }
            (Op::While { condition, body, carried }, operands, outs) => {
                self.repeated(condition, body, (*carried, operands), outs)
            }
            (
                Op::Constant(_)
                | Op::Full(_)
                | Op::Index(_)
                | Op::Unary(_)
                | Op::Binary(_)
                | Op::Select
                | Op::Cast
                | Op::View(_)
                | Op::Pad { .. }
                | Op::Gather(_)
                | Op::Scatter { .. }
                | Op::Cat { .. }
                | Op::Reduce { .. }
                | Op::Scan { .. }
                | Op::Sort { .. }
                | Op::NthElement { .. }
                | Op::SearchSorted { .. }
                | Op::Fourier(_)
                | Op::Collective(_)
                | Op::MatMul
                | Op::Conv(_)
                | Op::Read(_)
                | Op::Assert(_)
                | Op::Require(_)
                | Op::Cond { .. },
                _,
                _,
            ) => Err(format!("{} operands and {} results do not fit", ins.len(), outs.len())),
        }
    }

    fn extern_call(&self, call: &ExternCall, given: usize, made: usize) -> Check {
        let fits = given == call.n_operands() && made == call.n_results();
        ensure!(fits, "{given} operands and {made} results do not fit its arguments");
        call.sizes().try_for_each(|size| self.mentions(size, 0, true))
    }

    fn collective(&self, own: &Collective, x: &TensorType, out: &TensorType) -> Check {
        own.kind.sizes().try_for_each(|size| self.mentions(size, 0, true))?;
        let result = own.kind.result(x)?;
        ensure!(self.same_type(out, &result), "the result is {out}, not {result}");
        Ok(())
    }

    fn search_sorted(&self, sorted: &TensorType, values: &TensorType, out: &TensorType) -> Check {
        ensure!(sorted.dtype == values.dtype, "sorted is {}, values are {}", sorted.dtype, values.dtype);
        let rank = values.rank();
        ensure!(rank >= 1 && sorted.rank() == rank, "ranks {} and {rank}", sorted.rank());
        let leading = self.same_shape(&sorted.shape[..rank - 1], &values.shape[..rank - 1]);
        ensure!(leading, "leading axes differ");
        self.index_like(out, values)
    }

    /// The bodies of a loop, of whose operands the first few are carried from round to round.
    fn repeated(
        &self,
        condition: &Graph,
        body: &Graph,
        (carried, operands): (usize, &[&TensorType]),
        outs: &[&TensorType],
    ) -> Check {
        ensure!(carried <= operands.len(), "{carried} of {} operands carried", operands.len());
        let kept = operands[..carried].iter().zip(outs).all(|(a, b)| self.same_type(a, b));
        ensure!(kept && outs.len() == carried, "the results are not the carried values");
        self.body(body, operands, outs)?;
        ensure!(condition.outputs.len() == 1, "the condition has {} results", condition.outputs.len());
        let own = condition.outputs.first().and_then(|output| condition.values.get(output.value));
        let verdict = TensorType { dtype: DType::Bool, shape: vec![] };
        ensure!(own.is_some_and(|own| is_one(&own.ty, Category::Bool)), "the condition is not {verdict}");
        self.body_inputs(condition, operands)
    }

    fn shapes(&self, x: &TensorType, out: &TensorType) -> Check {
        ensure!(self.same_shape(&x.shape, &out.shape), "the result is {out}, the operand {x}");
        Ok(())
    }

    fn routine(&self, routine: Routine, ins: &[&TensorType], outs: &[&TensorType]) -> Check {
        let (operands, results) = (routine.operands(), routine.results());
        ensure!(
            ins.len() == operands.len() && outs.len() == results.len(),
            "{} operands and {} results",
            ins.len(),
            outs.len()
        );
        let whole = ins[routine.matrix()];
        ensure!(whole.rank() >= 2, "the operand {whole} is no matrix");
        ensure!(matches!(whole.dtype, DType::F32 | DType::F64), "of {}", whole.dtype);
        let (leading, [m, n]) =
            (&whole.shape[..whole.rank() - 2], [0, 1].map(|k| &whole.shape[whole.rank() - 2 + k]));
        ensure!(
            !routine.is_of_squares() || self.same_shape(std::slice::from_ref(m), std::slice::from_ref(n)),
            "{whole} is not square"
        );
        for (part, ty) in operands.iter().zip(ins).chain(results.iter().zip(outs)) {
            let dtype = if part.is_integer { DType::I64 } else { whole.dtype };
            let shape = part.shape(leading, m, n);
            let fits = ty.dtype == dtype && self.same_shape(&ty.shape, &shape);
            ensure!(fits, "{ty} where {} is wanted", TensorType { dtype, shape });
        }
        Ok(())
    }

    fn recurrent(&self, own: &Recurrent, ins: &[&TensorType], outs: &[&TensorType]) -> Check {
        let Some(gates) = ins.first() else { return Err("no operands".to_owned()) };
        ensure!(own.is_sound(), "`{}`", own.text());
        ensure!(
            matches!(gates.dtype, DType::F32 | DType::F64 | DType::F16 | DType::Bf16),
            "of {}",
            gates.dtype
        );
        let Some((steps, batch)) = own.steps_and_batch(&gates.shape) else {
            return Err(format!("{gates} is no sequence"));
        };
        let (operands, results) = (own.operand_shapes(steps, batch), own.result_shapes(steps, batch));
        let counts = (operands.len(), results.len());
        ensure!((ins.len(), outs.len()) == counts, "{} operands and {} results", ins.len(), outs.len());
        for (ty, shape) in ins.iter().zip(operands).chain(outs.iter().zip(results)) {
            let fits = ty.dtype == gates.dtype && self.same_shape(&ty.shape, &shape);
            ensure!(fits, "{ty} where {} is wanted", TensorType { dtype: gates.dtype, shape });
        }
        Ok(())
    }

    fn fourier(&self, fourier: &Fourier, x: &TensorType, roots: &TensorType, out: &TensorType) -> Check {
        ensure!(matches!(x.dtype, DType::F32 | DType::F64), "of {}", x.dtype);
        ensure!((1..=LONGEST).contains(&fourier.length), "a length of {}", fourier.length);
        let Some(shape) = fourier.result_shape(&x.shape) else {
            return Err(format!("{x} has no rows for `{}`", fourier.text()));
        };
        let fits = out.dtype == x.dtype && self.same_shape(&out.shape, &shape);
        ensure!(fits, "{out} where {} is wanted", TensorType { dtype: x.dtype, shape });
        let count = Plan::of(fourier, x.dtype).root_count();
        let fits = roots.dtype == x.dtype && self.same_shape(&roots.shape, &[Expr::int(count)]);
        ensure!(fits, "{roots} where {count} roots are wanted");
        Ok(())
    }

    fn index_like(&self, indices: &TensorType, x: &TensorType) -> Check {
        ensure!(indices.dtype == DType::I64, "the indices are {}, not i64", indices.dtype);
        self.shapes(x, indices)
    }

    fn unary(&self, op: UnaryOp, x: &TensorType, out: &TensorType) -> Check {
        let dtype = op.result(x.dtype);
        ensure!(out.dtype == dtype, "the result is {}, not {dtype}", out.dtype);
        ensure!(op.takes(x.dtype), "the function is not defined for {}", x.dtype);
        self.shapes(x, out)
    }

    fn binary(&self, op: BinaryOp, a: &TensorType, b: &TensorType, out: &TensorType) -> Check {
        ensure!(self.same_type(a, b), "the operands are {a} and {b}");
        let dtype = op.result(a.dtype);
        ensure!(out.dtype == dtype, "the result is {}, not {dtype}", out.dtype);
        ensure!(op.takes(a.dtype), "the function is not defined for {}", a.dtype);
        self.shapes(a, out)
    }

    /// Coordinates into `x` over the axes of `space`; `count` of them in all.
    fn coordinates<'e>(
        &self,
        coords: impl Iterator<Item = &'e Expr>,
        count: usize,
        x: &TensorType,
        space: &TensorType,
    ) -> Check {
        ensure!(count == x.rank(), "{count} coordinates for {} axes", x.rank());
        for (coord, size) in coords.zip(&x.shape) {
            self.coordinate(coord, size, space)?;
        }
        Ok(())
    }

    /// Only what is out of bounds for all sizes is an error; an empty iteration space has no coordinates.
    fn coordinate(&self, coord: &Expr, size: &Expr, space: &TensorType) -> Check {
        self.mentions(coord, space.rank(), true)?;
        let mut ranges = self.ranges.clone();
        for (axis, size) in space.shape.iter().enumerate() {
            ranges.set_extent(Symbol::axis(u32::try_from(axis).unwrap_or(u32::MAX)), size.clone());
        }
        let is_visited = space.shape.iter().all(|size| size.interval(&ranges).min > 0);
        let is_outside = coord.interval(&ranges).max < 0 || (coord - size).interval(&ranges).min >= 0;
        ensure!(!(is_visited && is_outside), "coordinate `{coord}` is outside an axis of size {size}");
        Ok(())
    }

    fn indirect(
        &self,
        coords: &[Coord],
        x: &TensorType,
        indices: &[&TensorType],
        space: &TensorType,
    ) -> Check {
        ensure!(coords.len() == x.rank(), "{} coordinates for {} axes", coords.len(), x.rank());
        indices.iter().try_for_each(|index| self.index_like(index, space))?;
        for (coord, size) in coords.iter().zip(&x.shape) {
            match coord {
                Coord::Expr(expr) => self.coordinate(expr, size, space)?,
                Coord::Indirect(k) | Coord::Wrapped(k) => {
                    ensure!(*k < indices.len(), "index operand {k} of {}", indices.len());
                }
            }
        }
        Ok(())
    }

    fn cat(&self, axis: usize, first: &TensorType, operands: &[&TensorType], out: &TensorType) -> Check {
        ensure!(axis < first.rank(), "axis {axis} of {}", first.rank());
        let mut total = Expr::int(0);
        for operand in operands {
            ensure!(
                operand.rank() == first.rank(),
                "operands have {} and {} axes",
                first.rank(),
                operand.rank()
            );
            total = &total + &operand.shape[axis];
            let mut expected = (*operand).clone();
            expected.shape[axis] = out.shape.get(axis).cloned().unwrap_or_else(|| Expr::int(0));
            ensure!(self.same_type(&expected, out), "operand {operand} does not fit result {out}");
        }
        ensure!(self.same_size(&total, &out.shape[axis]), "the result is {out}, the operands have {total}");
        Ok(())
    }

    fn reduce(&self, op: ReduceOp, axes: &[usize], x: &TensorType, out: &TensorType) -> Check {
        let ascending = axes.windows(2).all(|pair| pair[0] < pair[1]);
        ensure!(
            ascending && axes.last().is_some_and(|axis| *axis < x.rank()),
            "axes {axes:?} of {}",
            x.rank()
        );
        ensure!(!op.is_arg() || axes.len() == 1, "a position is along one axis, not {}", axes.len());
        let dtype = if op.is_arg() { DType::I64 } else { x.dtype };
        ensure!(out.dtype == dtype, "the result is {}, not {dtype}", out.dtype);
        let allowed = match op {
            ReduceOp::Any | ReduceOp::All => x.dtype == DType::Bool,
            ReduceOp::Xor => !x.dtype.is_float(),
            ReduceOp::Sum
            | ReduceOp::Prod
            | ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin => true,
        };
        ensure!(allowed, "the reduction is not defined for {}", x.dtype);
        let kept = x.shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let kept: Vec<Expr> = kept.map(|(_, size)| size.clone()).collect();
        ensure!(self.same_shape(&kept, &out.shape), "the result is {out}, the operand {x}");
        Ok(())
    }

    fn sort(
        &self,
        axis: usize,
        kept: Option<i64>,
        x: &TensorType,
        [values, indices]: [&TensorType; 2],
    ) -> Check {
        ensure!(axis < x.rank(), "axis {axis} of {}", x.rank());
        let mut of_result = x.clone();
        if let Some(kept) = kept {
            let fits = x.shape[axis].as_int().is_none_or(|length| kept <= length);
            ensure!(kept >= 0 && fits, "{kept} of {} elements", x.shape[axis]);
            of_result.shape[axis] = Expr::int(kept);
        }
        ensure!(self.same_type(values, &of_result), "the result is {values}, not {of_result}");
        self.index_like(indices, &of_result)
    }

    fn nth_element(
        &self,
        axis: usize,
        x: &TensorType,
        ranks: &TensorType,
        [values, indices]: [&TensorType; 2],
    ) -> Check {
        ensure!(axis < x.rank(), "axis {axis} of {}", x.rank());
        ensure!(!x.shape[axis].is(0), "none of no elements has a rank");
        let mut of_result = x.clone();
        of_result.shape[axis] = Expr::int(1);
        ensure!(self.same_type(values, &of_result), "the result is {values}, not {of_result}");
        self.index_like(ranks, &of_result)?;
        self.index_like(indices, &of_result)
    }

    fn matmul(&self, a: &TensorType, b: &TensorType, out: &TensorType) -> Check {
        let rank = a.rank();
        ensure!(a.dtype == b.dtype && a.dtype == out.dtype, "{a} times {b} is not {out}");
        ensure!(rank >= 2 && b.rank() == rank && out.rank() == rank, "{a} times {b} is not {out}");
        let batch = rank - 2;
        let fits = self.same_shape(&a.shape[..batch], &b.shape[..batch])
            && self.same_shape(&a.shape[..=batch], &out.shape[..=batch])
            && self.same_size(&a.shape[rank - 1], &b.shape[batch])
            && self.same_size(&b.shape[rank - 1], &out.shape[rank - 1]);
        ensure!(fits, "{a} times {b} is not {out}");
        Ok(())
    }

    fn conv(&self, conv: &Conv, x: &TensorType, weight: &TensorType, out: &TensorType) -> Check {
        let spatial = conv.stride.len();
        let lengths = [conv.padding.len(), conv.dilation.len(), conv.output_padding.len()];
        ensure!(lengths == [spatial; 3], "parameters do not have {spatial} entries each");
        let positive = conv.groups > 0 && conv.stride.iter().chain(&conv.dilation).all(|value| *value > 0);
        ensure!(positive, "groups, strides and dilations must be positive");
        let ranks = [x.rank(), weight.rank(), out.rank()];
        ensure!(ranks == [spatial + 2; 3], "{x} and {weight} do not give {out}");
        ensure!(x.dtype == weight.dtype && x.dtype == out.dtype, "{x} and {weight} do not give {out}");
        let per_group = &weight.shape[1] * conv.groups;
        let (ins, outs) =
            if conv.transposed { (&weight.shape[0], &per_group) } else { (&per_group, &weight.shape[0]) };
        let channels = self.same_size(&x.shape[1], ins) && self.same_size(&out.shape[1], outs);
        ensure!(channels && self.same_size(&x.shape[0], &out.shape[0]), "{x} and {weight} do not give {out}");
        if let (Some(channels), false) = (weight.shape[0].as_int(), conv.transposed) {
            ensure!(channels % conv.groups == 0, "{channels} channels in {} groups", conv.groups);
        }
        for axis in 0..spatial {
            let span = &(&(&weight.shape[axis + 2] - 1) * conv.dilation[axis]) + 1;
            let padding = conv.padding[axis].0.saturating_add(conv.padding[axis].1);
            let size = &x.shape[axis + 2];
            let expected = if conv.transposed {
                &(&(&(size - 1) * conv.stride[axis]) - padding) + &(&span + conv.output_padding[axis])
            } else {
                let room = &(size + padding) - &span;
                &room.floor_div_in(&Expr::int(conv.stride[axis]), &self.ranges) + 1
            };
            let given = &out.shape[axis + 2];
            ensure!(
                self.same_size(given, &expected),
                "axis {} of the result is {given}, not {expected}",
                axis + 2
            );
        }
        Ok(())
    }

    fn read(&self, symbol: Symbol, x: &TensorType) -> Check {
        ensure!(is_one(x, Category::Int), "the operand is {x}, not one integer");
        let info = self.symbols.get(symbol.index as usize);
        ensure!(
            info.is_some_and(|info| info.source == SymbolSource::Data),
            "{symbol} is not a symbol from data"
        );
        Ok(())
    }

    fn body_inputs(&self, body: &Graph, operands: &[&TensorType]) -> Check {
        let types: Option<Vec<&TensorType>> =
            body.inputs.iter().map(|input| body.values.get(input.value).map(|value| &value.ty)).collect();
        let fits = types.is_some_and(|types| self.same_types(&types, operands));
        ensure!(fits, "body `{}` does not take the operands", body.name);
        Ok(())
    }

    fn body(&self, body: &Graph, operands: &[&TensorType], outs: &[&TensorType]) -> Check {
        self.body_inputs(body, operands)?;
        let types: Option<Vec<&TensorType>> =
            body.outputs.iter().map(|output| body.values.get(output.value).map(|value| &value.ty)).collect();
        let fits = types.is_some_and(|types| self.same_types(&types, outs));
        ensure!(fits, "body `{}` does not give the results", body.name);
        Ok(())
    }

    fn same_types(&self, a: &[&TensorType], b: &[&TensorType]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_type(a, b))
    }
}

/// Whether a number is one that the element type holds.
fn fits(value: Scalar, dtype: DType) -> Check {
    let cast = value.cast(dtype);
    let same = cast == value || (matches!(value, Scalar::Float(v) if v.is_nan()) && dtype.is_float());
    ensure!(same, "{value} is not a number of {dtype}");
    Ok(())
}
