//! Recurrent layers: RNN, GRU and LSTM with everything that their nodes may state.
//!
//! What PyTorch's layers compute too is the same operator (`layer`); everything else is written step by step (`unrolled`).

mod functions;
mod layer;
mod unrolled;

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, many, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{Directions, ValueId};
use functions::Function;

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

/// How the gates of one direction make the next state.
#[derive(PartialEq)]
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

/// The node's operands.
struct Operands {
    /// `[steps, batch, features]`, or the batch first.
    x: ValueId,
    /// Whether the batch is the first axis of `x` and of the results.
    by_batch: bool,
    /// `[directions, gates * hidden, features]`.
    weight: ValueId,
    /// `[directions, gates * hidden, hidden]`.
    hidden_weight: ValueId,
    /// `[directions, 2 * gates * hidden]`.
    bias: Option<ValueId>,
    /// `[batch]`, where sequences may end before the last step.
    lengths: Option<ValueId>,
    /// `[directions, batch, hidden]` each.
    states: Vec<ValueId>,
    /// `[directions, 3 * hidden]`.
    peepholes: Option<ValueId>,
}

/// What a layer gives: `[steps, directions, batch, hidden]`, or `[batch, steps, directions, hidden]` where the batch is first; and
/// `[directions, batch, hidden]` for each state.
struct Results {
    all: ValueId,
    ends: Vec<ValueId>,
}

fn recurrent(cx: &mut Onnx, c: &Call, cell: Cell) -> Rule {
    let dtype = cx.b.dtype(c.tensor(0)?);
    let directions = match c.text("direction", "forward")?.to_ascii_lowercase().as_str() {
        "forward" => Directions::Forward,
        "reverse" => Directions::Reverse,
        "bidirectional" => Directions::Both,
        other => return Err(malformed(format!("the direction `{other}` is unknown"))),
    };
    let operands = operands(cx, c, cell)?;
    let forms = forms(c, cell, directions.reversed().len())?;
    let Results { all, ends } = match layer::cell(cx, &operands, &forms) {
        Some(cell) => layer::layer(cx, &operands, cell, directions)?,
        None => unrolled::layer(cx, &operands, &forms, directions)?,
    };
    let mut results = vec![cx.b.cast(all, dtype)];
    for end in ends {
        let end = if operands.by_batch { cx.b.transpose(end, 0, 1)? } else { end };
        results.push(cx.b.cast(end, dtype));
    }
    many(results)
}

fn operands(cx: &mut Onnx, c: &Call, cell: Cell) -> Result<Operands, RuleError> {
    let by_batch = c.flag("layout", false)?;
    let (x, weight, hidden_weight) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    if [x, weight, hidden_weight].iter().any(|value| cx.b.rank(*value) != 3) {
        return Err(malformed("the sequence and the weights have three axes"));
    }
    let dtype = cx.b.dtype(x);
    let (steps, batch) = if by_batch { (1, 0) } else { (0, 1) };
    let shape = [
        cx.b.shape(hidden_weight)[0].clone(),
        cx.b.shape(x)[batch].clone(),
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
        let state = match c.opt_tensor(*position)? {
            Some(state) if by_batch => cx.b.transpose(state, 0, 1)?,
            Some(state) => state,
            None => cx.b.full(0.0, dtype, &shape),
        };
        states.push(cx.required_shape(state, &shape)?);
    }
    let mut lengths = None;
    if let Some(given) = c.opt_tensor(4)? {
        let given = cx.required_shape(given, &shape[1..2])?;
        let given = cx.b.cast(given, DType::I64);
        let steps = cx.b.shape(x)[steps].clone();
        let is_whole = cx.known(given).is_some_and(|all| all.iter().all(|length| *length == steps));
        lengths = (!is_whole).then_some(given);
    }
    let bias = c.opt_tensor(3)?;
    let peepholes = if cell == Cell::Lstm { c.opt_tensor(7)? } else { None };
    Ok(Operands { x, by_batch, weight, hidden_weight, bias, lengths, states, peepholes })
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

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, float, int, text, texts};
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

    /// Limits that no gate reaches are what the operator cannot say.
    #[test]
    fn layers_are_one_operator_that_gives_what_their_steps_give() {
        let numbers = |sizes: &[usize], step: f32| {
            let count: usize = sizes.iter().product();
            let values: Vec<f32> = (0..count).map(|at| (at as f32 * step + step).sin()).collect();
            Tensor::from_f32(sizes, &values)
        };
        let (steps, batch, features, hidden) = (3, 2, 4, 3);
        let cells: [(&str, usize, &[_]); 5] = [
            ("RNN", 1, &[]),
            ("RNN", 1, &[texts("activations", &["Relu", "Relu"])]),
            ("GRU", 3, &[int("linear_before_reset", 1)]),
            ("LSTM", 4, &[]),
            ("LSTM", 4, &[int("layout", 1)]),
        ];
        for (operator, gates, own) in cells {
            let by_batch = own.iter().any(|attribute| attribute.name() == "layout");
            let ordered = |a: usize, b: usize, c: usize| if by_batch { [b, a, c] } else { [a, b, c] };
            let mut model = Model::new(14)
                .fixed_input("x", numbers(&ordered(steps, batch, features), 0.7))
                .constant("w", &numbers(&[2, gates * hidden, features], 0.9))
                .constant("r", &numbers(&[2, gates * hidden, hidden], 1.1))
                .constant("b", &numbers(&[2, 2 * gates * hidden], 1.3))
                .constant("h", &numbers(&ordered(2, batch, hidden), 1.7));
            let mut inputs = vec!["x", "w", "r", "b", "", "h"];
            let mut outputs = vec!["y", "end"];
            if operator == "LSTM" {
                model = model.constant("c", &numbers(&ordered(2, batch, hidden), 1.9));
                inputs.push("c");
                outputs.push("memory");
            }
            let direction = [text("direction", "bidirectional")];
            let whole = model.clone().node(operator, &inputs, &outputs, &[own, &direction].concat());
            let graph = whole.import(&outputs).unwrap().graph;
            assert!(graph.nodes.iter().any(|node| matches!(node.op, crate::graph::Op::Recurrent(_))));
            let attributes = [own, &direction, &[float("clip", 1e6)]].concat();
            let by_steps = model.node(operator, &inputs, &outputs, &attributes);
            let (whole, by_steps) = (whole.run(&outputs), by_steps.run(&outputs));
            for (left, right) in whole.iter().zip(&by_steps) {
                assert_eq!(left.sizes(), right.sizes(), "{operator}");
                let pairs = left.to_f64().into_iter().zip(right.to_f64());
                pairs.for_each(|(left, right)| assert!((left - right).abs() < 1e-5, "{operator}"));
            }
        }
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
