//! Functions of one number of one byte whose results are numbers of one byte, as a quantised network has between its products: of 256
//! numbers, all of which are known when the model is built. What gives each number back is nothing, such as quantising again by the
//! same scale; what takes long to compute becomes a lookup in a table.

use super::byte_products::is_byte;
use super::derive;
use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Coord, Graph, Node, Op, OutputRole, ValueId};
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::Expr;
use crate::target::Target;
use std::collections::BTreeMap;

/// Values of a function at most.
const MOST_NODES: usize = 64;
/// Values of a function at most that may give each number back, with no operator that takes long.
const MOST_PLAIN_NODES: usize = 16;
/// Numbers of one byte.
const NUMBERS: i64 = 256;

/// Replaces functions of bytes, on processors.
pub fn byte_functions(graph: Graph, target: &Target) -> Graph {
    match target {
        Target::Gpu(_) => return graph,
        Target::Cpu(_) => {}
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let converts = node.op == Op::Cast && is_byte(rewriter.builder.dtype(node.outputs[0]));
            converts.then(|| replaced(rewriter, node)).flatten().map(|value| vec![value])
        });
    })
}

/// What stands for a conversion to bytes.
fn replaced(rewriter: &mut Rewriter, node: &Node) -> Option<ValueId> {
    let mut function = Function::new(rewriter, node);
    let operand = function.of(node.inputs[0])?;
    let Function { mut recipe, known, byte, takes_long, .. } = function;
    let b = &mut rewriter.builder;
    let (byte, to) = (byte?, b.dtype(node.outputs[0]));
    let from = b.dtype(byte);
    if !takes_long && (known.len() > MOST_PLAIN_NODES || from != to) {
        return None;
    }
    let result = recipe.cast(operand, to);
    recipe.output("", result, OutputRole::User);
    let recipe = recipe.finish();
    let table = evaluate(&recipe, &[]).ok()?;
    let shape = b.shape(node.outputs[0]);
    let byte = b.reshape(byte, &shape).ok()?;
    if gives_back(&table[0], from) {
        return Some(byte);
    }
    if !takes_long {
        return None;
    }
    let table = derive::add(b, "", recipe, &table, None)?[0];
    let mut index = b.cast(byte, DType::I64);
    if from == DType::I8 {
        index = b.binary_scalar(BinaryOp::Add, index, NUMBERS / 2).ok()?;
    }
    b.gather(table, &[index], vec![Coord::Indirect(0)], &shape).ok()
}

/// Whether the results of all numbers of a type, from the lowest on, are these numbers.
fn gives_back(table: &Tensor, from: DType) -> bool {
    let lowest = if from == DType::I8 { -NUMBERS / 2 } else { 0 };
    table.dtype() == from && table.to_i64().is_some_and(|all| all.into_iter().eq(lowest..lowest + NUMBERS))
}

/// A function of one number, element by element, while its operators are looked at.
struct Function<'a> {
    builder: &'a Builder,
    /// How many elements all have that take part, in one order, whatever their shapes.
    elements: Expr,
    /// A graph of it for all numbers, from the lowest on, and the values that stand for those of the program.
    recipe: Builder,
    known: BTreeMap<ValueId, ValueId>,
    /// The number.
    byte: Option<ValueId>,
    takes_long: bool,
}

impl<'a> Function<'a> {
    /// The one of which a conversion is the last operator.
    fn new(rewriter: &'a Rewriter, node: &Node) -> Function<'a> {
        let builder = &rewriter.builder;
        let (elements, known) = (Expr::product(&builder.shape(node.outputs[0])), BTreeMap::new());
        Function { builder, elements, recipe: Builder::new(""), known, byte: None, takes_long: false }
    }

    /// What stands for a value, if one number is all that it depends on.
    fn of(&mut self, value: ValueId) -> Option<ValueId> {
        if let Some(known) = self.known.get(&value) {
            return Some(*known);
        }
        let b = self.builder;
        if self.known.len() >= MOST_NODES || Expr::product(&b.shape(value)) != self.elements {
            return None;
        }
        let own = if is_byte(b.dtype(value)) { self.all_numbers(value)? } else { self.operator(value)? };
        self.known.insert(value, own);
        Some(own)
    }

    fn all_numbers(&mut self, value: ValueId) -> Option<ValueId> {
        if self.byte.replace(value).is_some() {
            return None;
        }
        let dtype = self.builder.dtype(value);
        let mut numbers = self.recipe.index(Expr::axis(0), &[Expr::int(NUMBERS)]);
        if dtype == DType::I8 {
            numbers = self.recipe.binary_scalar(BinaryOp::Sub, numbers, NUMBERS / 2).ok()?;
        }
        Some(self.recipe.cast(numbers, dtype))
    }

    fn operator(&mut self, value: ValueId) -> Option<ValueId> {
        let (b, dtype) = (self.builder, self.builder.dtype(value));
        let maker = b.producer(value)?;
        if let Op::Full(number) = maker.op {
            return Some(self.recipe.full(number, dtype, &[Expr::int(NUMBERS)]));
        }
        if let Op::View(coords) = &maker.op {
            let (from, to) = (b.shape(maker.inputs[0]), b.shape(value));
            return if b.is_reshape(&from, coords, &to) { self.of(maker.inputs[0]) } else { None };
        }
        if !matches!(maker.op, Op::Cast | Op::Unary(_) | Op::Binary(_) | Op::Select) {
            return None;
        }
        let inputs = maker.inputs.iter().map(|input| self.of(*input)).collect::<Option<Vec<_>>>()?;
        if let Op::Unary(op) = maker.op {
            self.takes_long |= op.takes_long();
            Some(self.recipe.unary(op, inputs[0]))
        } else if let Op::Binary(op) = maker.op {
            self.takes_long |= op.takes_long();
            self.recipe.binary(op, inputs[0], inputs[1]).ok()
        } else if maker.op == Op::Cast {
            Some(self.recipe.cast(inputs[0], dtype))
        } else {
            self.recipe.select(inputs[0], inputs[1], inputs[2]).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::passes::dce;

    /// The graph of one input of all bytes after the pass, which keeps its results.
    #[track_caller]
    fn after(text: &str, dtype: DType) -> Graph {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = dce(byte_functions(graph.clone(), &Target::cpu(&["x86-64-v3"])));
        verify(&result).expect("the result is well formed");
        let x = Tensor::new(dtype, vec![16, 16], (0..=255u8).collect::<Vec<u8>>()).expect("the data fit");
        let inputs = [x];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        result
    }

    /// Dequantised and quantised by these numbers, with something between.
    fn quantised(dtype: &str, zero: i64, [own, other]: [f64; 2], between: &str) -> String {
        let (low, high) = if dtype == "i8" { (-128, 127) } else { (0, 255) };
        let all = "[16, 16]";
        format!(
            "input %x: {dtype}{all} %w: i32{all} = cast %x %z: i32{all} = full {zero} %d: i32{all} = sub %w, %z
             %c: f32{all} = cast %d %s: f32{all} = full {own} %a: f32{all} = mul %c, %s {between}
             %t: f32{all} = full {other} %q: f32{all} = div %b, %t %r: f32{all} = round %q %f: f32{all} = full {zero}.0
             %p: f32{all} = add %r, %f %l: f32{all} = full {low}.0 %m: f32{all} = maximum %p, %l
             %h: f32{all} = full {high}.0 %n: f32{all} = minimum %m, %h %y: {dtype}{all} = cast %n output %y \"y\""
        )
    }

    #[test]
    fn quantising_again_by_the_same_numbers_is_nothing() {
        let same = |dtype: &str, zero: i64| quantised(dtype, zero, [0.013, 0.013], "").replace("%b,", "%a,");
        for (dtype, own) in [("u8", DType::U8), ("i8", DType::I8)] {
            assert!(after(&same(dtype, 17), own).nodes.is_empty());
        }
        let other = quantised("u8", 17, [0.013, 0.026], "").replace("%b,", "%a,");
        assert!(after(&other, DType::U8).nodes.len() > 10, "a cheap function stays as it is");
    }

    #[test]
    fn what_takes_long_is_looked_up() {
        for (dtype, own) in [("u8", DType::U8), ("i8", DType::I8)] {
            let text = quantised(dtype, 5, [0.03, 0.01], "%b: f32[16, 16] = tanh %a");
            let result = after(&text, own);
            assert!(result.nodes.iter().any(|node| matches!(node.op, Op::Gather(_))));
            assert!(!result.nodes.iter().any(|node| matches!(node.op, Op::Unary(_))));
        }
    }

    #[test]
    fn other_shapes_of_the_same_elements_do_not_matter() {
        let text = |coords: &str| {
            format!(
                "input %x: u8[16, 16] %v: u8[1, 16, 16] = view %x {coords} %w: i32[1, 16, 16] = cast %v
                 %c: f32[1, 16, 16] = cast %w %f: f32[16, 16] = view %c [0, i0, i1] %r: f32[16, 16] = round %f
                 %y: u8[16, 16] = cast %r output %y \"y\""
            )
        };
        assert!(after(&text("[i1, i2]"), DType::U8).nodes.is_empty());
        // The other way round, the number at a place is another.
        let turned = after(&text("[i2, i1]"), DType::U8);
        assert!(turned.nodes.iter().all(|node| matches!(node.op, Op::View(_) | Op::Cast | Op::Unary(_))));
        assert!(!turned.nodes.is_empty());
    }

    #[test]
    fn functions_of_two_numbers_stay() {
        let text = quantised(
            "u8",
            5,
            [0.03, 0.01],
            "%e: f32[16, 16] = tanh %a %v: u8[16, 16] = view %x [i1, i0]
             %g: f32[16, 16] = cast %v %b: f32[16, 16] = add %e, %g",
        );
        assert!(!after(&text, DType::U8).nodes.iter().any(|node| matches!(node.op, Op::Gather(_))));
    }
}
