//! The rules of each operator: types, shapes, parameters.

use super::Ctx;
use crate::dtype::{Category, DType};
use crate::fourier::{Fourier, LONGEST, Plan};
use crate::graph::{
    BinaryOp, Collective, Constant, ConstantId, Conv, ExternCall, Graph, Node, Op, Recurrent, ReduceOp,
    Routine, Scalar, SymbolSource, TensorType, UnaryOp,
};
use crate::symbolic::{Expr, Symbol};

type Check = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition { return Err(format!($($message)+)); }
    };
}

mod moves;

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

/// A constant is there, with the type of the result.
fn constant(graph: &Graph, id: ConstantId, out: &TensorType) -> Check {
    let constant = graph.constants.get(id);
    ensure!(constant.is_some_and(|own| is_type_of(own, out)), "the constant is missing or of another type");
    Ok(())
}

/// One boolean, as conditions are.
fn decides(what: &str, ty: &TensorType) -> Check {
    ensure!(is_one(ty, Category::Bool), "the {what} is {ty}, not one boolean");
    Ok(())
}

/// The first operands, the others, and the results.
type WithMore<'a, const I: usize, const O: usize> =
    ([&'a TensorType; I], &'a [&'a TensorType], [&'a TensorType; O]);

/// The types of a node's operands and results.
#[derive(Clone, Copy)]
struct Types<'a> {
    ins: &'a [&'a TensorType],
    outs: &'a [&'a TensorType],
}

impl<'a> Types<'a> {
    /// Those of an operator with exactly so many operands and results.
    fn exactly<const I: usize, const O: usize>(
        self,
    ) -> Result<([&'a TensorType; I], [&'a TensorType; O]), String> {
        let both = self.ins.try_into().ok().zip(self.outs.try_into().ok());
        both.ok_or_else(|| self.misfit())
    }

    /// Those of an operator with exactly so many results, and with more operands than the first ones.
    fn with_more<const I: usize, const O: usize>(self) -> Result<WithMore<'a, I, O>, String> {
        let (first, more) = self.ins.split_first_chunk().ok_or_else(|| self.misfit())?;
        Ok((*first, more, self.outs.try_into().map_err(|_| self.misfit())?))
    }

    fn misfit(self) -> String {
        format!("{} operands and {} results do not fit", self.ins.len(), self.outs.len())
    }
}

impl Ctx<'_> {
    /// Checks one node, whose values exist; bodies are checked inside elsewhere.
    pub(super) fn op(&self, graph: &Graph, node: &Node) -> Check {
        let ins: Vec<&TensorType> = node.inputs.iter().map(|value| graph.ty(*value)).collect();
        let outs: Vec<&TensorType> = node.outputs.iter().map(|value| graph.ty(*value)).collect();
        let types = Types { ins: &ins, outs: &outs };
        match &node.op {
            Op::Constant(id) => types.exactly().and_then(|([], [out])| constant(graph, *id, out)),
            Op::Full(value) => types.exactly().and_then(|([], [out])| fits(*value, out.dtype)),
            Op::Index(expr) => types.exactly().and_then(|([], [out])| self.index(expr, out)),
            Op::Unary(op) => types.exactly().and_then(|([x], [out])| self.unary(*op, x, out)),
            Op::Binary(op) => types.exactly().and_then(|([a, b], [out])| self.binary(*op, a, b, out)),
            Op::Select => types.exactly().and_then(|(ins, [out])| self.select(ins, out)),
            Op::Cast => types.exactly().and_then(|([x], [out])| self.shapes(x, out)),
            Op::View(coords) => types.exactly().and_then(|([x], [out])| self.view(coords, x, out)),
            Op::Pad { coords, fill } => {
                types.exactly().and_then(|([x], [out])| self.pad(coords, *fill, x, out))
            }
            Op::Gather(coords) => {
                types.with_more().and_then(|([x], indices, [out])| self.gather(coords, x, indices, out))
            }
            Op::Scatter { coords, .. } => {
                types.with_more().and_then(|(own, indices, [out])| self.scatter(coords, own, indices, out))
            }
            Op::Cat { axis } => {
                types.with_more().and_then(|([first], _, [out])| self.cat(*axis, first, types.ins, out))
            }
            Op::Reduce { op, axes } => {
                types.exactly().and_then(|([x], [out])| self.reduce(*op, axes, x, out))
            }
            Op::Scan { op, axis } => self.scan(op.has_indices(), *axis, types),
            Op::Sort { axis, kept, .. } => {
                types.exactly().and_then(|([x], results)| self.sort(*axis, *kept, x, results))
            }
            Op::NthElement { axis, .. } => {
                types.exactly().and_then(|([x, ranks], results)| self.nth_element(*axis, x, ranks, results))
            }
            Op::SearchSorted { .. } => {
                types.exactly().and_then(|([sorted, values], [out])| self.search_sorted(sorted, values, out))
            }
            Op::Routine(routine) => self.routine(*routine, &ins, &outs),
            Op::Fourier(own) => {
                types.exactly().and_then(|([x, roots], [out])| self.fourier(own, x, roots, out))
            }
            Op::Recurrent(own) => self.recurrent(own, &ins, &outs),
            Op::Extern(call) => self.extern_call(call, ins.len(), outs.len()),
            Op::Collective(own) => types.exactly().and_then(|([x], [out])| self.collective(own, x, out)),
            Op::MatMul => types.exactly().and_then(|([a, b], [out])| self.matmul(a, b, out)),
            Op::Conv(conv) => {
                types.exactly().and_then(|([x, weight], [out])| self.conv(conv, x, weight, out))
            }
            Op::Read(symbol) => types.exactly().and_then(|([x], [])| self.read(*symbol, x)),
            Op::Assert(_) => types.exactly().and_then(|([x], [])| decides("condition", x)),
            Op::Require(guard) => types.exactly().and_then(|([], [])| self.guard(guard)),
            Op::Cond { then, otherwise } => self.cond([then, otherwise], types),
            Op::While { condition, body, carried } => self.repeated(condition, body, (*carried, &ins), &outs),
        }
    }

    fn index(&self, expr: &Expr, out: &TensorType) -> Check {
        ensure!(out.dtype == DType::I64, "the result is {}, not i64", out.dtype);
        self.mentions(expr, out.rank(), true)
    }

    fn select(&self, [condition, a, b]: [&TensorType; 3], out: &TensorType) -> Check {
        ensure!(condition.dtype == DType::Bool, "the condition is {}", condition.dtype);
        ensure!(self.same_shape(&condition.shape, &out.shape), "the condition has another shape");
        ensure!(self.same_type(a, out) && self.same_type(b, out), "a value has another type");
        Ok(())
    }

    fn scan(&self, has_indices: bool, axis: usize, types: Types<'_>) -> Check {
        let ([x], [values, indices @ ..]) = (types.ins, types.outs) else { return Err(types.misfit()) };
        ensure!(axis < x.rank(), "axis {axis} of {}", x.rank());
        ensure!(self.same_type(values, x), "the result is {values}, the operand {x}");
        ensure!(indices.len() == usize::from(has_indices), "{} results", types.outs.len());
        indices.iter().try_for_each(|indices| self.index_like(indices, x))
    }

    fn cond(&self, bodies: [&Graph; 2], types: Types<'_>) -> Check {
        let [predicate, operands @ ..] = types.ins else { return Err(types.misfit()) };
        decides("predicate", predicate)?;
        bodies.into_iter().try_for_each(|body| self.body(body, operands, types.outs))
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
