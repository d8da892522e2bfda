//! Recurrent layers: RNN, GRU and LSTM with everything that their nodes may state.
//!
//! The input's part of all gates of all steps is one matrix product; only the hidden state's part is one a step.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::sequence_steps::{Now, Stepped, Steps};
use super::{Rule, many, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Context, Formula, RuleError};
use crate::graph::{BinaryOp, Relation, TensorType, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "RNN" => |cx, c| recurrent(cx, c, Cell::Plain),
    "GRU" => |cx, c| recurrent(cx, c, Cell::Gru),
    "LSTM" => |cx, c| recurrent(cx, c, Cell::Lstm),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Plain,
    Gru,
    Lstm,
}

impl Cell {
    /// Gates of a cell.
    fn gates(self) -> i64 {
        match self {
            Cell::Plain => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }

    /// Functions of a cell, where the node names none.
    fn functions(self) -> &'static [&'static str] {
        match self {
            Cell::Plain => &["Tanh"],
            Cell::Gru => &["Sigmoid", "Tanh"],
            Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// A function of gates.
#[derive(Clone, Copy)]
enum Function {
    Relu,
    Tanh,
    Sigmoid,
    Softsign,
    Softplus,
    LeakyRelu(f64),
    ThresholdedRelu(f64),
    Elu(f64),
    Affine(f64, f64),
    ScaledTanh(f64, f64),
    HardSigmoid(f64, f64),
}

impl Function {
    /// By its name, with what it takes of the lists of numbers.
    fn take(
        name: &str,
        alphas: &mut dyn Iterator<Item = f64>,
        betas: &mut dyn Iterator<Item = f64>,
    ) -> Result<Function, RuleError> {
        let mut alpha = |default: f64| alphas.next().unwrap_or(default);
        let mut beta = |default: f64| betas.next().unwrap_or(default);
        Ok(match name.to_ascii_lowercase().as_str() {
            "relu" => Function::Relu,
            "tanh" => Function::Tanh,
            "sigmoid" => Function::Sigmoid,
            "softsign" => Function::Softsign,
            "softplus" => Function::Softplus,
            "leakyrelu" => Function::LeakyRelu(alpha(0.01)),
            "thresholdedrelu" => Function::ThresholdedRelu(alpha(1.0)),
            "elu" => Function::Elu(alpha(1.0)),
            "affine" => Function::Affine(alpha(1.0), beta(0.0)),
            "scaledtanh" => Function::ScaledTanh(alpha(1.0), beta(1.0)),
            "hardsigmoid" => Function::HardSigmoid(alpha(0.2), beta(0.5)),
            _ => return Err(malformed(format!("the activation `{name}` is unknown"))),
        })
    }

    fn of(self, x: &Formula) -> Formula {
        match self {
            Function::Relu => x.max(0.0),
            Function::Tanh => x.tanh(),
            Function::Sigmoid => x.sigmoid(),
            Function::Softsign => x / (x.abs() + 1.0),
            Function::Softplus => x.max(0.0) + (-x.abs()).exp().log1p(),
            Function::LeakyRelu(alpha) => x.lt(0.0).select(x * alpha, x),
            Function::ThresholdedRelu(alpha) => x.gt(alpha).select(x, 0.0),
            Function::Elu(alpha) => x.lt(0.0).select(x.min(0.0).expm1() * alpha, x),
            Function::Affine(alpha, beta) => x * alpha + beta,
            Function::ScaledTanh(alpha, beta) => (x * beta).tanh() * alpha,
            Function::HardSigmoid(alpha, beta) => (x * alpha + beta).max(0.0).min(1.0),
        }
    }
}

/// How the gates of one direction make the next state.
struct Form {
    cell: Cell,
    functions: Vec<Function>,
    /// Gates are kept within so much of zero.
    clip: Option<f64>,
    /// A GRU resets what the hidden state was multiplied to, not the state.
    resets_product: bool,
    /// An LSTM forgets as much as it does not take in.
    couples: bool,
}

/// The node's operands in the type that it is computed in.
struct Operands {
    /// `[steps, batch, features]`.
    x: ValueId,
    /// `[directions, gates * hidden, features]`.
    weight: ValueId,
    /// `[directions, gates * hidden, hidden]`.
    hidden_weight: ValueId,
    /// `[directions, 2 * gates * hidden]`.
    bias: Option<ValueId>,
    /// `[batch]`.
    lengths: Option<ValueId>,
    /// `[directions, batch, hidden]` each.
    states: Vec<ValueId>,
    /// `[directions, 3 * hidden]`.
    peepholes: Option<ValueId>,
}

fn recurrent(cx: &mut Onnx, c: &Call, cell: Cell) -> Rule {
    let dtype = cx.b.dtype(c.tensor(0)?);
    let by_batch = c.flag("layout", false)?;
    let operands = operands(cx, c, cell, by_batch)?;
    let reversed: &[bool] = match c.text("direction", "forward")?.to_ascii_lowercase().as_str() {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(malformed(format!("the direction `{other}` is unknown"))),
    };
    let mut forms = forms(c, cell, reversed.len())?.into_iter();
    let (mut outputs, mut ends) = (Vec::new(), vec![Vec::new(); operands.states.len()]);
    for (direction, reverse) in reversed.iter().enumerate() {
        let form = forms.next().ok_or_else(|| malformed("activations are missing"))?;
        let (output, end) = sequence(cx, &operands, &form, direction, *reverse)?;
        outputs.push(cx.b.unsqueeze(output, 1)?);
        for (all, value) in ends.iter_mut().zip(end) {
            all.push(cx.b.unsqueeze(value, 0)?);
        }
    }
    // [steps, directions, batch, hidden], and [directions, batch, hidden] for each state.
    let mut output = cx.b.cat(&outputs, 1)?;
    if by_batch {
        output = cx.b.permute(output, &[2, 0, 1, 3])?;
    }
    let mut results = vec![cx.b.cast(output, dtype)];
    for end in ends {
        let mut end = cx.b.cat(&end, 0)?;
        if by_batch {
            end = cx.b.transpose(end, 0, 1)?;
        }
        results.push(cx.b.cast(end, dtype));
    }
    many(results)
}

fn operands(cx: &mut Onnx, c: &Call, cell: Cell, by_batch: bool) -> Result<Operands, RuleError> {
    let wide = cx.b.dtype(c.tensor(0)?).compute();
    let given = |cx: &mut Onnx, position: usize| -> Result<Option<ValueId>, RuleError> {
        Ok(c.opt_tensor(position)?.map(|value| cx.b.cast(value, wide)))
    };
    let needed = |cx: &mut Onnx, position: usize| -> Result<ValueId, RuleError> {
        Ok(cx.b.cast(c.tensor(position)?, wide))
    };
    let (mut x, weight, hidden_weight) = (needed(cx, 0)?, needed(cx, 1)?, needed(cx, 2)?);
    if [x, weight, hidden_weight].iter().any(|value| cx.b.rank(*value) != 3) {
        return Err(malformed("the sequence and the weights have three axes"));
    }
    if by_batch {
        x = cx.b.transpose(x, 0, 1)?;
    }
    let shape = [
        cx.b.shape(hidden_weight)[0].clone(),
        cx.b.shape(x)[1].clone(),
        cx.b.shape(hidden_weight)[2].clone(),
    ];
    // Gates of both weights are as wide as the state, whatever their sizes are called.
    let gates = &shape[2] * cell.gates();
    let inner = [shape[0].clone(), gates.clone(), cx.b.shape(x)[2].clone()];
    let weight = cx.required_shape(weight, &inner)?;
    let hidden_weight = cx.required_shape(hidden_weight, &[shape[0].clone(), gates, shape[2].clone()])?;
    let positions: &[usize] = if cell == Cell::Lstm { &[5, 6] } else { &[5] };
    let mut states = Vec::new();
    for position in positions {
        states.push(match given(cx, *position)? {
            Some(state) if by_batch => cx.b.transpose(state, 0, 1)?,
            Some(state) => state,
            None => cx.b.full(0.0, wide, &shape),
        });
    }
    let states =
        states.into_iter().map(|state| cx.required_shape(state, &shape)).collect::<Result<Vec<_>, _>>()?;
    Ok(Operands {
        x,
        weight,
        hidden_weight,
        bias: given(cx, 3)?,
        lengths: match c.opt_tensor(4)? {
            Some(lengths) => {
                let lengths = cx.required_shape(lengths, &shape[1..2])?;
                Some(cx.b.cast(lengths, DType::I64))
            }
            None => None,
        },
        states,
        peepholes: if cell == Cell::Lstm { given(cx, 7)? } else { None },
    })
}

/// The form of each direction.
fn forms(c: &Call, cell: Cell, directions: usize) -> Result<Vec<Form>, RuleError> {
    let each = cell.functions().len();
    let names = c.opt_texts("activations")?.filter(|names| !names.is_empty());
    let mut names = names.unwrap_or_else(|| cell.functions().repeat(directions));
    if names.len() == each && directions == 2 {
        names = names.repeat(2);
    }
    if names.len() != each * directions {
        return Err(malformed(format!("{} activations", names.len())));
    }
    let list = |name: &str| Ok::<_, RuleError>(c.opt_floats(name)?.unwrap_or_default().into_iter());
    let (mut alphas, mut betas) = (list("activation_alpha")?, list("activation_beta")?);
    let functions = names.iter().map(|name| Function::take(name, &mut alphas, &mut betas));
    let functions = functions.collect::<Result<Vec<_>, _>>()?;
    let clip = c.opt_float("clip")?.filter(|clip| *clip > 0.0);
    let resets_product = c.flag("linear_before_reset", false)?;
    let couples = c.flag("input_forget", false)?;
    let form = |own: &[Function]| Form { cell, functions: own.to_vec(), clip, resets_product, couples };
    Ok(functions.chunks_exact(each).map(form).collect())
}

/// What a step needs of one direction's parameters, at fixed places in a list.
struct Parameters {
    /// `[hidden, gates * hidden]`.
    hidden_weight: ValueId,
    /// Of what the hidden state is multiplied to, where it cannot be added to the input's part.
    hidden_bias: Option<ValueId>,
    peepholes: Option<ValueId>,
    lengths: Option<ValueId>,
}

impl Parameters {
    fn list(&self) -> Vec<ValueId> {
        let others = [self.hidden_bias, self.peepholes, self.lengths];
        std::iter::once(self.hidden_weight).chain(others.into_iter().flatten()).collect()
    }

    /// The same parameters as values of a body that captured them.
    fn captured(&self, list: &[ValueId]) -> Parameters {
        let mut list = list.iter().copied();
        let hidden_weight = list.next().unwrap_or(self.hidden_weight);
        let mut next = |own: Option<ValueId>| own.and_then(|_| list.next());
        Parameters {
            hidden_weight,
            hidden_bias: next(self.hidden_bias),
            peepholes: next(self.peepholes),
            lengths: next(self.lengths),
        }
    }
}

/// One direction: `[steps, batch, hidden]`, and the last states.
fn sequence(
    cx: &mut Onnx,
    operands: &Operands,
    form: &Form,
    direction: usize,
    reverse: bool,
) -> Result<(ValueId, Vec<ValueId>), RuleError> {
    let at = Expr::int(if direction == 0 { 0 } else { 1 });
    let start = operands.states.iter().map(|state| Ok(cx.b.pick(*state, 0, &at)?));
    let start = start.collect::<Result<Vec<_>, RuleError>>()?;
    let weight = cx.b.pick(operands.weight, 0, &at)?;
    let weight = cx.b.transpose(weight, 0, 1)?;
    let mut projected = cx.matmul(operands.x, weight)?;
    let hidden_weight = cx.b.pick(operands.hidden_weight, 0, &at)?;
    let mut own = Parameters {
        hidden_weight: cx.b.transpose(hidden_weight, 0, 1)?,
        hidden_bias: None,
        peepholes: operands.peepholes.map(|all| cx.b.pick(all, 0, &at)).transpose()?,
        lengths: operands.lengths,
    };
    if let Some(bias) = operands.bias {
        let bias = cx.b.pick(bias, 0, &at)?;
        let half = cx.b.shape(weight)[1].clone();
        let input = cx.b.slice(bias, 0, &Expr::int(0), &half, 1)?;
        let hidden = cx.b.slice(bias, 0, &half, &half, 1)?;
        projected = cx.add(projected, input)?;
        if form.cell == Cell::Gru && form.resets_product {
            own.hidden_bias = Some(hidden);
        } else {
            projected = cx.add(projected, hidden)?;
        }
    }
    let captured = own.list();
    let steps = Steps {
        name: "recurrent",
        count: cx.b.shape(operands.x)[0].clone(),
        reverse,
        rows: &[projected],
        captured: &captured,
        output: TensorType { dtype: cx.b.dtype(start[0]), shape: cx.b.shape(start[0]) },
    };
    let (output, ends) =
        steps.run(cx, &start, &mut |cx, now| step(cx, form, &own.captured(now.captured), &now))?;
    Ok((output, ends))
}

/// The hidden state, which is the output too, then the cell state of an LSTM.
fn step(cx: &mut Context, form: &Form, own: &Parameters, now: &Now) -> Stepped {
    let gates = now.rows[0];
    let next = match form.cell {
        Cell::Plain => vec![plain(cx, form, own, gates, now.state[0])?],
        Cell::Gru => vec![gru(cx, form, own, gates, now.state[0])?],
        Cell::Lstm => lstm(cx, form, own, gates, now.state)?,
    };
    let Some(lengths) = own.lengths else { return Ok((next[0], next)) };
    // Behind the end of its sequence, a row's state stays and its output is zero.
    let goes_on = cx.binary(Relation::Gt, lengths, now.position)?;
    let goes_on = cx.b.unsqueeze(goes_on, 1)?;
    let zero = cx.b.full_like(0.0, next[0]);
    let output = cx.b.select(goes_on, next[0], zero)?;
    let pairs = next.into_iter().zip(now.state);
    let kept = pairs.map(|(new, old)| Ok(cx.b.select(goes_on, new, *old)?));
    Ok((output, kept.collect::<Result<Vec<_>, RuleError>>()?))
}

/// Parts of a size each of the last axis.
fn parts(cx: &mut Context, x: ValueId, size: &Expr, count: i64) -> Result<Vec<ValueId>, RuleError> {
    let last = cx.b.rank(x) - 1;
    (0..count).map(|k| Ok(cx.b.slice(x, last, &(size * k), size, 1)?)).collect()
}

impl Form {
    /// One of the functions, of a gate.
    fn function(&self, position: usize, gate: &Formula) -> Formula {
        self.functions[position].of(&self.clipped(gate))
    }

    fn clipped(&self, gate: &Formula) -> Formula {
        match self.clip {
            Some(clip) => gate.max(-clip).min(clip),
            None => gate.clone(),
        }
    }
}

fn plain(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gate: ValueId,
    hidden: ValueId,
) -> Result<ValueId, RuleError> {
    let recurrent = cx.b.matmul(hidden, own.hidden_weight)?;
    let dtype = cx.b.dtype(hidden);
    cx.apply([gate, recurrent], dtype, |[x, h]| form.function(0, &(x + h)))
}

/// Gates are update, reset and the new state.
fn gru(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gates: ValueId,
    hidden: ValueId,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(hidden);
    let size = cx.b.shape(hidden)[1].clone();
    let x = parts(cx, gates, &size, form.cell.gates())?;
    let weights = parts(cx, own.hidden_weight, &size, form.cell.gates())?;
    let biases = own.hidden_bias.map(|bias| parts(cx, bias, &size, form.cell.gates())).transpose()?;
    let product = |cx: &mut Context, state: ValueId, gate: usize| -> Result<ValueId, RuleError> {
        let product = cx.b.matmul(state, weights[gate])?;
        match &biases {
            Some(biases) => cx.add(product, biases[gate]),
            None => Ok(product),
        }
    };
    let (of_update, of_reset) = (product(cx, hidden, 0)?, product(cx, hidden, 1)?);
    let update = cx.apply([x[0], of_update], dtype, |[x, h]| form.function(0, &(x + h)))?;
    let reset = cx.apply([x[1], of_reset], dtype, |[x, h]| form.function(0, &(x + h)))?;
    let remembered = if form.resets_product {
        let recurrent = product(cx, hidden, 2)?;
        cx.mul(reset, recurrent)?
    } else {
        let kept = cx.mul(reset, hidden)?;
        product(cx, kept, 2)?
    };
    cx.apply([x[2], remembered, update, hidden], dtype, |[x, h, update, old]| {
        let new = form.function(1, &(x + h));
        (1.0 - &update) * new + update * old
    })
}

/// Gates are input, output, forget and the new cell state; the first three may look at the cell state.
fn lstm(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gates: ValueId,
    state: &[ValueId],
) -> Result<Vec<ValueId>, RuleError> {
    let [hidden, cell] = *state else { return Err(unsupported("an LSTM without a cell state")) };
    let dtype = cx.b.dtype(hidden);
    let recurrent = cx.b.matmul(hidden, own.hidden_weight)?;
    let all = cx.binary(BinaryOp::Add, gates, recurrent)?;
    let size = cx.b.shape(hidden)[1].clone();
    let all = parts(cx, all, &size, form.cell.gates())?;
    let looks = own.peepholes.map(|weights| parts(cx, weights, &size, 3)).transpose()?;
    let gate = |cx: &mut Context, position: usize, cell: ValueId| -> Result<ValueId, RuleError> {
        let Some(looks) = &looks else { return Ok(all[position]) };
        let seen = cx.mul(cell, looks[position])?;
        cx.add(all[position], seen)
    };
    let (input, forget) = (gate(cx, 0, cell)?, gate(cx, 2, cell)?);
    let new_cell = cx.apply([input, forget, all[3], cell], dtype, |[input, forget, new, old]| {
        let input = form.function(0, &input);
        let forget = if form.couples { 1.0 - &input } else { form.function(0, &forget) };
        forget * old + input * form.function(1, &new)
    })?;
    let output = gate(cx, 1, new_cell)?;
    let new_hidden = cx.apply([output, new_cell], dtype, |[output, cell]| {
        form.function(0, &output) * form.functions[2].of(&cell)
    })?;
    Ok(vec![new_hidden, new_cell])
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, int, text, texts};
    use crate::interpret::Tensor;

    fn ones(sizes: &[usize]) -> Tensor {
        Tensor::from_f32(sizes, &vec![1.0; sizes.iter().product()])
    }

    /// Sizes of inputs are open, so that the steps are a loop; of constants they are fixed.
    #[test]
    fn steps_are_the_same_as_a_loop_and_one_by_one() {
        let x = Tensor::from_f32(&[2, 1, 1], &[1.0, 2.0]);
        let attributes = [text("direction", "bidirectional"), texts("activations", &["Relu", "Relu"])];
        let of = |model: Model| {
            let model = model.constant("w", &ones(&[2, 1, 1])).constant("r", &ones(&[2, 1, 1])).node(
                "RNN",
                &["x", "w", "r"],
                &["y", "end"],
                &attributes,
            );
            let results = model.run(&["y", "end"]);
            (results[0].to_f64(), results[1].to_f64())
        };
        let expected = (vec![1.0, 3.0, 3.0, 2.0], vec![3.0, 3.0]);
        assert_eq!(of(Model::new(14).input("x", x.clone())), expected);
        assert_eq!(of(Model::new(14).constant("x", &x)), expected);
    }

    #[test]
    fn rows_end_where_their_lengths_say() {
        let model = Model::new(14)
            .input("x", Tensor::from_f32(&[2, 2, 1], &[1.0, 5.0, 2.0, 7.0]))
            .input("lengths", Tensor::from_i32(&[2], &[2, 1]))
            .constant("w", &ones(&[1, 1, 1]))
            .constant("r", &ones(&[1, 1, 1]))
            .node(
                "RNN",
                &["x", "w", "r", "", "lengths"],
                &["y", "end"],
                &[text("direction", "reverse"), texts("activations", &["Affine"])],
            );
        let results = model.run(&["y", "end"]);
        assert_eq!(results[0].to_f64(), [3.0, 5.0, 2.0, 0.0]);
        assert_eq!(results[1].to_f64(), [3.0, 5.0]);
    }

    /// All functions are the identity: i = o = f = c is the gate.
    #[test]
    fn gates_make_a_cell() {
        let lstm = |attributes: &[crate::frontend::onnx::proto::AttributeProto]| {
            let functions = [texts("activations", &["Affine"; 3])];
            Model::new(14)
                .input("x", Tensor::from_f32(&[2, 1, 1], &[1.0, 2.0]))
                .constant("w", &ones(&[1, 4, 1]))
                .constant("r", &ones(&[1, 4, 1]))
                .node("LSTM", &["x", "w", "r"], &["y", "h", "c"], &[&functions, attributes].concat())
                .run(&["y", "c"])
                .iter()
                .map(Tensor::to_f64)
                .collect::<Vec<_>>()
        };
        assert_eq!(lstm(&[]), [vec![1.0, 36.0], vec![12.0]]);
        // What is forgotten is 1 - 3.
        assert_eq!(lstm(&[int("input_forget", 1)]), [vec![1.0, 21.0], vec![7.0]]);
    }

    /// Of x = 1, h = 2, weights of 1 and biases of the hidden state's part of 1: z = r = 4.
    #[test]
    fn a_reset_is_of_the_state_or_of_the_product() {
        let gru = |resets_product: i64| {
            Model::new(14)
                .input("x", Tensor::from_f32(&[1, 1, 1], &[1.0]))
                .constant("h", &Tensor::from_f32(&[1, 1, 1], &[2.0]))
                .constant("w", &ones(&[1, 3, 1]))
                .constant("b", &Tensor::from_f32(&[1, 6], &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))
                .node(
                    "GRU",
                    &["x", "w", "w", "b", "", "h"],
                    &["y"],
                    &[int("linear_before_reset", resets_product), texts("activations", &["Affine"; 2])],
                )
                .numbers()
        };
        // New states are 1 + 4 * 2 + 1 and 1 + 4 * (2 + 1).
        assert_eq!(gru(0), [-3.0 * 10.0 + 4.0 * 2.0]);
        assert_eq!(gru(1), [-3.0 * 13.0 + 4.0 * 2.0]);
    }
}
