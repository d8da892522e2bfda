//! Limits that later ones make superfluous: where a network quantises what an activation has limited, quantising limits it too.
//! Between both are functions that grow with what they are given, so that what the first limit would have changed ends at the
//! second one or is changed there just as well.
//!
//! Only numbers that become integers are looked at: of these, nobody sees the sign of a zero.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use super::uniform_constants::splat;
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, FloatBinary, Graph, Node, Op, OutputRole, Scalar, UnaryOp, ValueId};
use crate::interpret::evaluate;
use cranelift_entity::SecondaryMap;

/// Functions that are looked at in a row.
const MOST_STEPS: usize = 16;

/// A function of one number that never falls where it grows.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// What it does.
    pub(super) op: StepOp,
    /// Its operand, a value of the graph.
    pub(super) from: ValueId,
}

#[derive(Clone, Copy)]
pub(super) enum StepOp {
    /// Alone.
    Unary(UnaryOp),
    /// With this number on the right.
    Binary(BinaryOp, Scalar),
}

/// Takes superfluous limits away.
pub fn drop_nested_limits(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let uses = count_uses(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            (node.op == Op::Cast).then(|| without(rewriter, node, &uses)).flatten().map(|value| vec![value])
        });
    })
}

/// The conversion to an integer of what is left.
fn without(rewriter: &mut Rewriter, node: &Node, uses: &SecondaryMap<ValueId, usize>) -> Option<ValueId> {
    let to = rewriter.builder.dtype(node.outputs[0]);
    let own = rewriter.builder.dtype(node.inputs[0]);
    if to.category() != Category::Int || own != DType::F32 {
        return None;
    }
    let mut steps = steps(rewriter, node.inputs[0], uses);
    let count = steps.len();
    // From the innermost on.
    steps.reverse();
    let mut at = 0;
    while at < steps.len() {
        if is_superfluous(&steps[at], &steps[at + 1..]) {
            let behind = steps.remove(at).from;
            if let Some(next) = steps.get_mut(at) {
                next.from = behind;
            }
        } else {
            at += 1;
        }
    }
    if steps.len() == count {
        return None;
    }
    let b = &mut rewriter.builder;
    let mut value = steps.first()?.from;
    for step in &steps {
        value = match step.op {
            StepOp::Unary(op) => b.unary(op, value),
            StepOp::Binary(op, number) => b.binary_scalar(op, value, number).ok()?,
        };
    }
    Some(b.cast(value, to))
}

/// The functions that make a value, the last one first. What others read too is computed anyway.
fn steps(rewriter: &Rewriter, value: ValueId, uses: &SecondaryMap<ValueId, usize>) -> Vec<Step> {
    let (mut value, mut steps) = (value, Vec::new());
    while steps.len() < MOST_STEPS && uses[value] <= 1 {
        let Some(step) = rewriter.producer(value).and_then(|maker| step(rewriter, maker)) else { break };
        steps.push(step);
        value = step.from;
    }
    steps
}

/// The function that a node is.
pub(super) fn step(rewriter: &Rewriter, maker: &Node) -> Option<Step> {
    if let Op::Unary(op @ UnaryOp::Round(_)) = maker.op {
        return Some(Step { op: StepOp::Unary(op), from: maker.inputs[0] });
    }
    let Op::Binary(op) = maker.op else { return None };
    let [a, b] = [maker.inputs[0], maker.inputs[1]];
    let either_way = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Maximum | BinaryOp::Minimum);
    let (from, number) = match (splat(rewriter, b), splat(rewriter, a)) {
        (Some(number), None) => (a, number),
        (None, Some(number)) if either_way => (b, number),
        _ => return None,
    };
    grows(op, number.to_f64()).then_some(Step { op: StepOp::Binary(op, number), from })
}

/// Whether a function of a number and this one on its right never falls, and is not a number for nothing else.
fn grows(op: BinaryOp, number: f64) -> bool {
    let is_scale = number > 0.0 && (number as f32).is_normal();
    match op {
        BinaryOp::Add | BinaryOp::Sub => (number as f32).is_finite(),
        BinaryOp::Maximum | BinaryOp::Minimum => !number.is_nan(),
        BinaryOp::Mul | BinaryOp::Float(FloatBinary::Div) => is_scale,
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Fmax
        | BinaryOp::Fmin
        | BinaryOp::Compare(_)
        | BinaryOp::Int(_)
        | BinaryOp::Float(_)
        | BinaryOp::Special(_) => false,
    }
}

/// Whether a step changes nothing that is left after the later ones.
fn is_superfluous(step: &Step, later: &[Step]) -> bool {
    let StepOp::Binary(op, bound) = step.op else { return false };
    let bound = bound.to_f64() as f32;
    if matches!(op, BinaryOp::Add | BinaryOp::Sub) {
        return bound == 0.0;
    }
    // A later limit of the same kind that the bound does not get past.
    let is_past =
        |bound: f32, number: f32| if op == BinaryOp::Maximum { bound > number } else { bound < number };
    matches!(op, BinaryOp::Maximum | BinaryOp::Minimum)
        && (0..later.len()).any(|end| match later[end].op {
            StepOp::Binary(limit, number) if limit == op => {
                after(bound, &later[..end]).is_some_and(|bound| !is_past(bound, number.to_f64() as f32))
            }
            StepOp::Binary(..) | StepOp::Unary(_) => false,
        })
}

/// A number after some steps.
fn after(number: f32, steps: &[Step]) -> Option<f32> {
    let mut b = crate::graph::Builder::new("");
    let mut value = b.full(f64::from(number), DType::F32, &[]);
    for step in steps {
        value = match step.op {
            StepOp::Unary(op) => b.unary(op, value),
            StepOp::Binary(op, number) => b.binary_scalar(op, value, number).ok()?,
        };
    }
    b.output("", value, OutputRole::User);
    let results = evaluate(&b.finish(), &[]).ok()?;
    Some(results.first()?.to_f64().first().copied()? as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::Tensor;
    use crate::passes::dce;

    /// How many operators with two operands are left of a network's activation and what quantises it; the pass keeps results.
    #[track_caller]
    fn left(activation: &str, scale: &str, zero: i64, more: &str) -> usize {
        let text = format!(
            "graph {{ input %x: f32[12] %0: f32[12] = full 0.0 %6: f32[12] = full 6.0 {activation}
             %s: f32[12] = full {scale} %m: f32[12] = mul %a, %s %r: f32[12] = round %m %z: f32[12] = full {zero}.0
             %p: f32[12] = add %r, %z %l: f32[12] = maximum %p, %0 %f: f32[12] = full 255.0 %h: f32[12] = minimum %l, %f
             %y: u8[12] = cast %h output %y \"y\" {more} }}"
        );
        let graph = parse(&text).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = dce(drop_nested_limits(graph.clone()));
        verify(&result).expect("the result is well formed");
        let infinite = f32::INFINITY;
        let x = [-infinite, -7.0, -1e-30, -0.0, 0.0, 0.01, 0.5, 5.99, 6.0, 6.01, 1e30, infinite];
        let x = x.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let inputs = [Tensor::new(DType::F32, vec![12], x).expect("the data fit")];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        result.nodes.iter().filter(|node| matches!(node.op, Op::Binary(_))).count()
    }

    const RELU: &str = "%a: f32[12] = maximum %x, %0";
    const RELU6: &str = "%b: f32[12] = maximum %x, %0 %a: f32[12] = minimum %b, %6";

    #[test]
    fn quantising_limits_what_an_activation_does() {
        // The scale, and two limits.
        assert_eq!(left(RELU, "40.0", 0, ""), 3);
        assert_eq!(left(RELU6, "42.5", 0, ""), 3);
    }

    #[test]
    fn limits_within_those_of_bytes_stay() {
        assert_eq!(left(RELU6, "42.0", 0, ""), 4, "6 is less than 255");
        assert_eq!(left(RELU, "40.0", 3, ""), 5, "0 is more than 0, and so the zero point is added");
        assert_eq!(left(RELU, "-40.0", 0, ""), 4, "a function that falls");
    }

    #[test]
    fn what_others_read_stays() {
        assert_eq!(left(RELU, "40.0", 0, "output %a \"a\""), 4);
    }
}
