//! Walks a graph node by node: binds symbols, checks what must hold, evaluates bodies.

use super::error::EvalError;
use super::index::Symbols;
use super::tensor::Tensor;
use super::{binary, contract, convert, fourier, matrices, movement, order, recurrent, reduce, unary};
use crate::dtype::DType;
use crate::graph::{Graph, Guard, Input, InputRole, Node, Op, SymbolInfo, SymbolSource, TensorType, ValueId};
use crate::symbolic::Symbol;
use cranelift_entity::EntityRef;

/// Tensors larger than this many bytes are refused.
const MAX_BYTES: i64 = 1 << 32;

/// Computes all outputs of a graph, in order.
///
/// `inputs` are one tensor for each input of the graph, or one for each [`InputRole::User`] input; then state starts
/// as its constants, and random numbers are those of seed and offset 0. Element types, sizes, ranges and guards are
/// checked first. The graph must be one that [`crate::graph::verify`] accepts; a loop that never ends is not
/// interrupted.
pub fn evaluate(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    evaluate_watched(graph, inputs, &mut |_, _| ())
}

/// The same, telling of every value that a node of the graph itself computes, in order; not of those of bodies.
pub fn evaluate_watched(
    graph: &Graph,
    inputs: &[Tensor],
    watch: &mut dyn FnMut(ValueId, &Tensor),
) -> Result<Vec<Tensor>, EvalError> {
    let inputs = with_state(graph, inputs)?;
    let mut run = Run { outer: graph, symbols: bind_symbols(graph, &inputs)?, watch };
    check_inputs(graph, &inputs, &run.symbols)?;
    for (index, info) in graph.symbols.iter().enumerate() {
        if let Some(value) = run.symbols.0[index] {
            check_range(info, index, value)?;
        }
    }
    for guard in &graph.guards {
        check_guard(guard, &run.symbols)?;
    }
    run.body(graph, inputs)
}

fn with_state(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    if inputs.len() == graph.inputs.len() {
        return Ok(inputs.to_vec());
    }
    let expected = graph.inputs.iter().filter(|input| input.role == InputRole::User).count();
    if inputs.len() != expected {
        return Err(EvalError::InputCount { expected, given: inputs.len() });
    }
    let mut given = inputs.iter();
    graph
        .inputs
        .iter()
        .map(|input| match input.role {
            InputRole::User => Ok(given.next().expect("counted above").clone()),
            InputRole::State(id) => constant(graph, id),
            InputRole::Generator => Ok(Tensor::from_i64(&[2], &[0, 0])),
        })
        .collect()
}

fn constant(graph: &Graph, id: crate::graph::ConstantId) -> Result<Tensor, EvalError> {
    let malformed = || EvalError::Malformed(format!("constant {id:?} is missing or of the wrong size"));
    let constant = graph.constants.get(id).ok_or_else(malformed)?;
    let sizes: Option<Vec<usize>> = constant.sizes.iter().map(|size| usize::try_from(*size).ok()).collect();
    Tensor::new(constant.dtype, sizes.ok_or_else(malformed)?, constant.data.clone()).map_err(|_| malformed())
}

fn bind_symbols(graph: &Graph, inputs: &[Tensor]) -> Result<Symbols, EvalError> {
    let mut symbols = Symbols::default();
    for info in &graph.symbols {
        let value = match info.source {
            SymbolSource::InputDim { input, axis } => {
                let size = inputs.get(input).and_then(|tensor| tensor.sizes().get(axis));
                size.map(|size| *size as i64)
            }
            SymbolSource::InputValue { input } => {
                inputs.get(input).and_then(Tensor::to_i64).and_then(|values| values.first().copied())
            }
            SymbolSource::Data => {
                symbols.0.push(None);
                continue;
            }
        };
        if value.is_none() {
            return Err(EvalError::Size { expr: info.name.clone() });
        }
        symbols.0.push(value);
    }
    Ok(symbols)
}

fn check_inputs(graph: &Graph, inputs: &[Tensor], symbols: &Symbols) -> Result<(), EvalError> {
    for (Input { value, name, .. }, tensor) in graph.inputs.iter().zip(inputs) {
        let ty = graph.ty(*value);
        let sizes = symbols.sizes(&ty.shape)?;
        if tensor.dtype() != ty.dtype || tensor.sizes() != sizes {
            return Err(EvalError::InputType {
                input: name.clone(),
                expected: format!("{}{:?}", ty.dtype, sizes),
                given: format!("{}{:?}", tensor.dtype(), tensor.sizes()),
            });
        }
    }
    Ok(())
}

fn check_range(info: &SymbolInfo, index: usize, value: i64) -> Result<(), EvalError> {
    if (info.range.min..=info.range.max).contains(&value) {
        return Ok(());
    }
    let symbol = if info.name.is_empty() { format!("s{index}") } else { info.name.clone() };
    Err(EvalError::Range { symbol, value, min: info.range.min, max: info.range.max })
}

/// Fails where a guard does not hold.
pub(super) fn check_guard(guard: &Guard, symbols: &Symbols) -> Result<(), EvalError> {
    let value_of = |symbol: Symbol| symbols.0.get(symbol.index as usize).copied().flatten();
    if guard.condition.evaluate(&value_of) {
        return Ok(());
    }
    let condition = guard.condition.display_with(&|symbol| symbol.to_string());
    let message = if guard.message.is_empty() { String::new() } else { format!(": {}", guard.message) };
    Err(EvalError::Guard { guard: format!("{condition}{message}") })
}

struct Run<'a> {
    /// The outermost graph, which owns the symbols.
    outer: &'a Graph,
    symbols: Symbols,
    watch: &'a mut dyn FnMut(ValueId, &Tensor),
}

/// Values of one graph while it runs.
struct Values {
    tensors: Vec<Option<Tensor>>,
    /// Uses still to come; the tensor is dropped with the last.
    uses: Vec<usize>,
}

impl Values {
    fn new(graph: &Graph) -> Values {
        let mut uses = vec![0; graph.values.len()];
        let operands = graph.nodes.iter().flat_map(|node| &node.inputs);
        for value in operands.chain(graph.outputs.iter().map(|output| &output.value)) {
            uses[value.index()] += 1;
        }
        Values { tensors: vec![None; graph.values.len()], uses }
    }

    fn take(&mut self, value: ValueId) -> Result<Tensor, EvalError> {
        let slot = &mut self.tensors[value.index()];
        self.uses[value.index()] -= 1;
        let tensor = if self.uses[value.index()] == 0 { slot.take() } else { slot.clone() };
        tensor.ok_or_else(|| EvalError::Malformed(format!("{value:?} is used before it is defined")))
    }

    fn define(&mut self, value: ValueId, tensor: Tensor) {
        if self.uses[value.index()] > 0 {
            self.tensors[value.index()] = Some(tensor);
        }
    }
}

impl Run<'_> {
    fn body(&mut self, graph: &Graph, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, EvalError> {
        if inputs.len() != graph.inputs.len() {
            return Err(EvalError::InputCount { expected: graph.inputs.len(), given: inputs.len() });
        }
        let mut values = Values::new(graph);
        for (input, tensor) in graph.inputs.iter().zip(inputs) {
            values.define(input.value, tensor);
        }
        for node in &graph.nodes {
            self.node(graph, node, &mut values)
                .map_err(|error| EvalError::At { place: place(graph, node), error: Box::new(error) })?;
        }
        graph.outputs.iter().map(|output| values.take(output.value)).collect()
    }

    fn node(&mut self, graph: &Graph, node: &Node, values: &mut Values) -> Result<(), EvalError> {
        let operands: Vec<Tensor> =
            node.inputs.iter().map(|value| values.take(*value)).collect::<Result<_, _>>()?;
        let results = self.apply(graph, node, &operands)?;
        if results.len() != node.outputs.len() {
            return Err(EvalError::Malformed(format!(
                "{} results, not {}",
                results.len(),
                node.outputs.len()
            )));
        }
        for (value, tensor) in node.outputs.iter().zip(results) {
            let ty = graph.ty(*value);
            // A loop may change a size that was read from data, so the type is looked at only now.
            let sizes = self.sizes(ty)?;
            if tensor.dtype() != ty.dtype || tensor.sizes() != sizes {
                let given = format!("{}{:?}", tensor.dtype(), tensor.sizes());
                return Err(EvalError::Malformed(format!("result is {given}, not {}{sizes:?}", ty.dtype)));
            }
            if std::ptr::eq(graph, self.outer) {
                (self.watch)(*value, &tensor);
            }
            values.define(*value, tensor);
        }
        Ok(())
    }

    /// Sizes of a value, refused where they would not fit into memory.
    fn sizes(&self, ty: &TensorType) -> Result<Vec<usize>, EvalError> {
        let sizes = self.symbols.sizes(&ty.shape)?;
        let bytes = sizes.iter().try_fold(ty.dtype.size() as i64, |bytes, size| {
            i64::try_from(*size).ok().and_then(|size| bytes.checked_mul(size))
        });
        match bytes {
            Some(bytes) if bytes <= MAX_BYTES => Ok(sizes),
            _ => Err(EvalError::TooLarge(format!("{}{sizes:?}", ty.dtype))),
        }
    }

    fn apply(&mut self, graph: &Graph, node: &Node, operands: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
        let operand =
            |k: usize| operands.get(k).ok_or_else(|| EvalError::Malformed(format!("operand {k} is missing")));
        let (dtype, sizes) = match node.outputs.first() {
            Some(value) => (graph.ty(*value).dtype, self.sizes(graph.ty(*value))?),
            None => (DType::Bool, vec![]),
        };
        let indices = |from: usize| operands.iter().skip(from).collect::<Vec<&Tensor>>();
        let result = match &node.op {
            Op::Constant(id) => constant(graph, *id)?,
            Op::Full(value) => movement::full(*value, dtype, sizes),
            Op::Index(expr) => movement::index(expr, sizes, &self.symbols)?,
            Op::Unary(op) => unary::unary(*op, operand(0)?)?,
            Op::Binary(op) => binary::binary(*op, operand(0)?, operand(1)?)?,
            Op::Select => movement::select(operand(0)?, operand(1)?, operand(2)?),
            Op::Cast => convert::cast(operand(0)?, dtype),
            Op::View(coords) => movement::view(operand(0)?, coords, None, sizes, &self.symbols)?,
            Op::Pad { coords, fill } => {
                movement::view(operand(0)?, coords, Some(*fill), sizes, &self.symbols)?
            }
            Op::Gather(coords) => movement::gather(operand(0)?, &indices(1), coords, sizes, &self.symbols)?,
            Op::Scatter { coords, combine } => {
                movement::scatter(operand(0)?, operand(1)?, &indices(2), coords, *combine, &self.symbols)?
            }
            Op::Cat { axis } => movement::cat(&indices(0), *axis, sizes)?,
            Op::Reduce { op, axes } => reduce::reduce(*op, operand(0)?, axes, sizes)?,
            Op::Scan { op, axis } => {
                let (values, indices) = reduce::scan(*op, operand(0)?, *axis)?;
                return Ok([Some(values), indices].into_iter().flatten().collect());
            }
            Op::Sort { axis, descending, kept } => {
                return Ok(order::sort_whole(operand(0)?, *axis, *kept, *descending));
            }
            Op::NthElement { axis, ties } => {
                return order::nth_elements(operand(0)?, operand(1)?, *axis, *ties);
            }
            Op::SearchSorted { right } => order::search_sorted(operand(0)?, operand(1)?, *right)?,
            Op::Routine(routine) => {
                let results = node.outputs.iter().map(|value| {
                    let ty = graph.ty(*value);
                    Ok((ty.dtype, self.sizes(ty)?))
                });
                let results = results.collect::<Result<Vec<_>, EvalError>>()?;
                let whole = operand(routine.matrix())?.sizes();
                let [batch @ .., m, n] = whole else {
                    return Err(EvalError::Malformed(format!("`{}` of no matrix", routine.name())));
                };
                let sizes = [batch.iter().product(), *m, *n];
                return matrices::apply(*routine, operands, sizes, results);
            }
            Op::Fourier(own) => fourier::transform(own, operand(0)?, sizes),
            Op::Recurrent(own) => return recurrent::layer(own, operands),
            Op::Extern(call) => return Err(EvalError::Extern { operator: call.operator.clone() }),
            Op::Collective(own) => return Err(EvalError::Collective(own.kind.name())),
            Op::MatMul => contract::matmul(operand(0)?, operand(1)?)?,
            Op::Conv(conv) => contract::conv(operand(0)?, operand(1)?, conv, sizes)?,
            Op::Read(symbol) => {
                self.read(*symbol, operand(0)?)?;
                return Ok(vec![]);
            }
            Op::Assert(message) => {
                let holds = single(operand(0)?)? != 0;
                return if holds { Ok(vec![]) } else { Err(EvalError::Assert(message.clone())) };
            }
            Op::Require(guard) => {
                check_guard(guard, &self.symbols)?;
                return Ok(vec![]);
            }
            Op::Cond { then, otherwise } => {
                let chosen = if single(operand(0)?)? != 0 { then } else { otherwise };
                return self.body(chosen, operands[1..].to_vec());
            }
            Op::While { condition, body, carried } => {
                return self.repeat(condition, body, *carried, operands.to_vec());
            }
        };
        Ok(vec![result])
    }

    fn read(&mut self, symbol: Symbol, x: &Tensor) -> Result<(), EvalError> {
        let value = single(x)?;
        let index = symbol.index as usize;
        let info = self.outer.symbols.get(index);
        let info = info.ok_or_else(|| EvalError::Malformed(format!("symbol {symbol} does not exist")))?;
        check_range(info, index, value)?;
        let most = info.most.as_ref().map(|most| self.symbols.value(most)).transpose()?;
        if let Some(most) = most.filter(|most| value > *most) {
            let symbol = info.name.clone();
            return Err(EvalError::Range { symbol, value, min: info.range.min, max: most });
        }
        self.symbols.0[index] = Some(value);
        Ok(())
    }

    fn repeat(
        &mut self,
        condition: &Graph,
        body: &Graph,
        carried: usize,
        mut operands: Vec<Tensor>,
    ) -> Result<Vec<Tensor>, EvalError> {
        loop {
            let verdict = self.body(condition, operands.clone())?;
            let verdict = verdict.first().ok_or_else(|| EvalError::Malformed("no condition".to_owned()))?;
            if single(verdict)? == 0 {
                operands.truncate(carried);
                return Ok(operands);
            }
            let next = self.body(body, operands.clone())?;
            for (slot, tensor) in operands.iter_mut().zip(next) {
                *slot = tensor;
            }
        }
    }
}

/// The value of a one-element integer or boolean tensor.
fn single(x: &Tensor) -> Result<i64, EvalError> {
    match x.to_i64().as_deref() {
        Some([value]) => Ok(*value),
        _ => Err(EvalError::Malformed(format!("{}{:?} is not one integer", x.dtype(), x.sizes()))),
    }
}

fn place(graph: &Graph, node: &Node) -> String {
    let result = node.outputs.first().map_or_else(String::new, |value| format!("{value:?} = "));
    let origin = graph.origins.get(node.origin);
    let origin = origin.filter(|origin| !origin.node.is_empty()).map(|origin| format!(" ({})", origin.node));
    format!("{result}{}{}", node.op.name(), origin.unwrap_or_default())
}
