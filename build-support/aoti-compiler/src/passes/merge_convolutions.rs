//! Sums of convolutions of one operand become one convolution, where the window of one has all taps of the others': the
//! parallel branches of networks that are trained with more branches than they need, such as RepVGG and MobileOne.
//!
//! conv(x, V) + conv(x, W) = conv(x, V + W), with zeros around the smaller weight: the same function, rounded elsewhere. The sum
//! of the weights is computed in `f64` and rounded once, as a graph over the constants (`derive.rs`), so that other weights
//! merge the same way.

use super::derive;
use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Constant, ConstantId, Conv, Graph, Node, Op, OutputRole, ValueId};
use crate::symbolic::Expr;
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::BTreeMap;

/// Merges convolutions of one operand whose results are added up.
pub fn merge_convolutions(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let sums = Finder::new(graph).sums();
        rewrite(graph, ranges, &mut |rewriter, node| {
            let sum = sums.get(node.outputs.first()?)?;
            apply(rewriter, sum).map(|value| vec![value])
        });
    })
}

/// A term of a sum.
enum Term {
    Value(ValueId),
    Convolution(Member),
    /// What another term of the sum computes too.
    Merged {
        into: usize,
        member: Member,
        lead: Vec<i64>,
    },
}

/// A convolution that only the sum reads, with a weight that only it reads.
#[derive(Clone)]
struct Member {
    node: Node,
    conv: Conv,
    weight: ConstantId,
    /// Taps along each spatial axis.
    kernel: Vec<i64>,
}

impl Member {
    /// For each spatial axis the tap of this window at which the other's first lies, if this one has all taps of the other.
    fn lead_of(&self, other: &Member) -> Option<Vec<i64>> {
        let (own, conv) = (&self.conv, &other.conv);
        if self.node.inputs[0] != other.node.inputs[0]
            || own.stride != conv.stride
            || own.groups != conv.groups
        {
            return None;
        }
        let axis = |axis: usize| {
            let (count, step) = (other.kernel[axis], own.dilation[axis]);
            let elements = own.padding[axis].0 - conv.padding[axis].0;
            let lead = elements / step;
            let is_in_step = elements % step == 0 && (count == 1 || conv.dilation[axis] == step);
            (is_in_step && lead >= 0 && lead + count <= self.kernel[axis]).then_some(lead)
        };
        (0..self.kernel.len()).map(axis).collect()
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    uses: SecondaryMap<ValueId, usize>,
    producers: Vec<Option<usize>>,
}

impl<'a> Finder<'a> {
    fn new(graph: &'a Graph) -> Finder<'a> {
        Finder { graph, uses: count_uses(graph), producers: graph.producers() }
    }

    fn maker(&self, value: ValueId) -> Option<&'a Node> {
        self.producers[value.index()].map(|position| &self.graph.nodes[position])
    }

    /// All sums with convolutions that merge, by their value. A sum that is a term of another is no sum of its own.
    fn sums(&self) -> BTreeMap<ValueId, Vec<Term>> {
        let mut sums = BTreeMap::new();
        for node in self.graph.nodes.iter().filter(|node| node.op == Op::Binary(BinaryOp::Add)) {
            let mut terms = vec![];
            self.collect(node, &mut terms, &mut sums);
            if merge(&mut terms) {
                sums.insert(node.outputs[0], terms);
            }
        }
        sums
    }

    /// The terms of an addition, in order; sums that nothing else reads are taken apart.
    fn collect(&self, add: &Node, terms: &mut Vec<Term>, sums: &mut BTreeMap<ValueId, Vec<Term>>) {
        for value in &add.inputs {
            match self.maker(*value) {
                Some(inner) if inner.op == add.op && self.uses[*value] == 1 => {
                    sums.remove(value);
                    self.collect(inner, terms, sums);
                }
                Some(_) | None => terms.push(match self.member(*value) {
                    Some(member) => Term::Convolution(member),
                    None => Term::Value(*value),
                }),
            }
        }
    }

    fn member(&self, value: ValueId) -> Option<Member> {
        let node = self.maker(value)?;
        let Op::Conv(conv) = &node.op else { return None };
        let Op::Constant(weight) = self.maker(node.inputs[1])?.op else { return None };
        let Constant { sizes, dtype, .. } = &self.graph.constants[weight];
        let is_own = self.uses[value] == 1 && self.uses[node.inputs[1]] == 1;
        if conv.transposed || !is_own || !matches!(dtype, DType::F32 | DType::F64) {
            return None;
        }
        Some(Member { node: node.clone(), conv: conv.clone(), weight, kernel: sizes.get(2..)?.to_vec() })
    }
}

/// Merges each convolution into the largest one that has all its taps; whether there is one.
fn merge(terms: &mut [Term]) -> bool {
    let mut has_merged = false;
    for at in 0..terms.len() {
        let Term::Convolution(member) = &terms[at] else { continue };
        let hosts = terms.iter().enumerate().filter_map(|(into, term)| {
            let Term::Convolution(host) = term else { return None };
            let lead = host.lead_of(member).filter(|_| into != at)?;
            Some((host.kernel.iter().product::<i64>(), into, lead))
        });
        let host = hosts.max_by_key(|(taps, ..)| *taps);
        // What has something merged into it stays: of equal windows, the last.
        let is_host = terms.iter().any(|term| matches!(term, Term::Merged { into, .. } if *into == at));
        if let Some((_, into, lead)) = host.filter(|_| !is_host) {
            terms[at] = Term::Merged { into, member: member.clone(), lead };
            has_merged = true;
        }
    }
    has_merged
}

fn apply(rewriter: &mut Rewriter, sum: &[Term]) -> Option<ValueId> {
    let origin = rewriter.builder.graph().nodes.last().map(|node| node.origin);
    let mut total = None;
    for (at, term) in sum.iter().enumerate() {
        let value = match term {
            Term::Merged { .. } => continue,
            Term::Value(value) => rewriter.current(*value),
            Term::Convolution(member) => {
                let parts = sum.iter().filter_map(|term| match term {
                    Term::Merged { into, member, lead } if *into == at => Some((member, lead.as_slice())),
                    Term::Merged { .. } | Term::Value(_) | Term::Convolution(_) => None,
                });
                convolution(rewriter, member, &parts.collect::<Vec<_>>())?
            }
        };
        if let Some(origin) = origin {
            rewriter.builder.continue_origin(origin);
        }
        total = Some(match total {
            Some(total) => rewriter.builder.binary(BinaryOp::Add, total, value).ok()?,
            None => value,
        });
    }
    total
}

/// A convolution with what has been merged into it.
fn convolution(rewriter: &mut Rewriter, member: &Member, parts: &[(&Member, &[i64])]) -> Option<ValueId> {
    let [x, weight] = *member.node.inputs.as_slice() else { return None };
    let x = rewriter.current(x);
    let weight = match parts {
        [] => rewriter.current(weight),
        parts => merged_weight(rewriter, member, parts)?,
    };
    let builder = &mut rewriter.builder;
    builder.continue_origin(member.node.origin);
    builder.conv(x, weight, member.conv.clone()).ok()
}

/// The sum of the weights, each with zeros around it up to the largest window.
fn merged_weight(rewriter: &mut Rewriter, member: &Member, parts: &[(&Member, &[i64])]) -> Option<ValueId> {
    let builder = &mut rewriter.builder;
    let constants = &builder.graph().constants;
    let own = constants[member.weight].clone();
    let others: Vec<Constant> = parts.iter().map(|(part, _)| constants[part.weight].clone()).collect();
    let mut recipe = Builder::new("");
    let whole = recipe.constant(own.clone()).ok()?;
    let mut total = recipe.cast(whole, DType::F64);
    for ((part, lead), constant) in parts.iter().zip(others) {
        let weight = recipe.constant(constant).ok()?;
        let wide = recipe.cast(weight, DType::F64);
        let around = lead.iter().zip(&part.kernel).zip(&member.kernel);
        let amounts = around.map(|((lead, count), all)| (Expr::int(*lead), Expr::int(all - lead - count)));
        let none = || (Expr::int(0), Expr::int(0));
        let amounts: Vec<_> = [none(), none()].into_iter().chain(amounts).collect();
        let padded = recipe.pad(wide, &amounts, 0.0).ok()?;
        total = recipe.binary(BinaryOp::Add, total, padded).ok()?;
    }
    let narrow = recipe.cast(total, own.dtype);
    recipe.output("", narrow, OutputRole::User);
    let name = if own.name.is_empty() { String::new() } else { format!("{}.merged", own.name) };
    derive::derive(builder, &name, recipe.finish())?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::merge_convolutions;

    #[test]
    fn convolutions_of_one_operand_that_are_added_become_one() {
        let conv = |padding: &str, dilation: i64| {
            format!("stride [2] padding [{padding}] dilation [{dilation}] groups 1 output_padding [0]")
        };
        check(
            merge_convolutions,
            &format!(
                "const c0: f32[1, 2, 1] = [1, 2] const c1 \"w\": f32[1, 2, 3] = [3, 4, 5, 6, 7, 8]
                 const c2: f32[1, 2, 2] = [0.5, 1, 2, 4] const c3: f32[1] = [9]
                 input %x: f32[1, 2, 9] %u: f32[1, 2, 1] = constant c0 %v: f32[1, 2, 3] = constant c1
                 %w: f32[1, 2, 2] = constant c2 %s: f32[1] = constant c3 %t: f32[1, 1, 5] = view %s [0]
                 %a: f32[1, 1, 5] = conv %x, %u {} %b: f32[1, 1, 5] = conv %x, %v {} %c: f32[1, 1, 5] = conv %x, %w {}
                 %at: f32[1, 1, 5] = add %a, %t %bc: f32[1, 1, 5] = add %b, %c %d: f32[1, 1, 5] = add %at, %bc output %d",
                conv("0:0", 1),
                conv("2:2", 2),
                conv("0:2", 2),
            ),
            &format!(
                "const c0: f32[1] = [9] const c1 \"w.merged\": f32[1, 2, 3] = [3, 5.5, 6, 6, 11, 12]
                 input %x: f32[1, 2, 9] %s: f32[1] = constant c0 %t: f32[1, 1, 5] = view %s [0]
                 %v: f32[1, 2, 3] = constant c1 %b: f32[1, 1, 5] = conv %x, %v {} %d: f32[1, 1, 5] = add %t, %b output %d",
                conv("2:2", 2),
            ),
        );
    }

    #[test]
    fn convolutions_whose_taps_differ_stay() {
        let stays = |first: &str, second: &str| {
            let text = format!(
                "const c0: f32[2, 1, 3] = random 1 const c1: f32[2, 1, 3] = random 2
                 input %x: f32[1, 2, 9] %u: f32[2, 1, 3] = constant c0 %v: f32[2, 1, 3] = constant c1
                 %a: f32[1, 2, 8] = conv %x, %u stride [1] padding {first} groups 2 output_padding [0]
                 %b: f32[1, 2, 8] = conv %x, %v stride [1] padding {second} groups 2 output_padding [0]
                 %c: f32[1, 2, 8] = add %a, %b output %c"
            );
            check(merge_convolutions, &text, &text);
        };
        stays("[0:1] dilation [1]", "[1:2] dilation [2]");
        stays("[0:1] dilation [1]", "[1:0] dilation [1]");
    }
}
