//! Rows that are sorted, on GPUs by as many kernels as it takes, and elements by their rank.

use super::Scope;
use crate::graph::{Node, Op, Scalar, Ties, ValueId};
use crate::kernels::axis_ops::sorting;
use crate::loops::{AxisKernel, AxisOp, KernelKind, Sorting};
use crate::symbolic::Expr;
use crate::target::Target;
use cranelift_entity::EntityRef;

impl<'a> Scope<'a> {
    /// On GPUs as many kernels as it takes.
    pub(super) fn sort(&mut self, node: &'a Node, axis: usize, (descending, kept): (bool, Option<i64>)) {
        let ty = self.graph.ty(node.inputs[0]).clone();
        let passes = match self.target {
            Target::Gpu(_) => sorting::passes(ty.dtype, &ty.shape[axis], descending, kept),
            Target::Cpu(_) => vec![Sorting { descending, run: None, merged: None, kept }],
        };
        let places = sorting::places(&ty.shape[axis]);
        let (outer, inner) = (Expr::product(&ty.shape[..axis]), Expr::product(&ty.shape[axis + 1..]));
        let (mut inputs, mut length) = (vec![self.realize_now(node.inputs[0])], ty.shape[axis].clone());
        for (number, pass) in passes.iter().enumerate() {
            let results = pass.results(&length);
            let outputs = if number + 1 == passes.len() {
                node.outputs.iter().map(|output| self.new_home(*output)).collect()
            } else {
                let shape = vec![outer.clone(), results.clone(), inner.clone()];
                let values = self.temporary(ty.dtype, shape.clone(), "sorted");
                vec![values, self.temporary(places, shape, "places")]
            };
            let operation = AxisKernel {
                op: AxisOp::Sort(*pass),
                dtype: ty.dtype,
                inputs: inputs.clone(),
                outputs: outputs.clone(),
                outer: outer.clone(),
                length,
                inner: inner.clone(),
            };
            self.run_kernel(Some(node), "sort", KernelKind::AxisOp(operation));
            (inputs, length) = (outputs, results);
        }
    }

    pub(super) fn nth_element(&mut self, node: &'a Node, axis: usize, ties: Ties) {
        let ty = self.graph.ty(node.inputs[0]).clone();
        let rank = self.number_of(node.inputs[1]);
        let inputs = if rank.is_some() { &node.inputs[..1] } else { &node.inputs };
        let operation = AxisKernel {
            op: AxisOp::NthElement { ties, rank },
            dtype: ty.dtype,
            inputs: inputs.iter().map(|input| self.realize_now(*input)).collect(),
            outputs: node.outputs.iter().map(|output| self.new_home(*output)).collect(),
            outer: Expr::product(&ty.shape[..axis]),
            length: ty.shape[axis].clone(),
            inner: Expr::product(&ty.shape[axis + 1..]),
        };
        self.run_kernel(Some(node), "nth_element", KernelKind::AxisOp(operation));
    }

    /// The number that all elements of a value are.
    fn number_of(&self, value: ValueId) -> Option<i64> {
        let maker = &self.graph.nodes[self.producers[value.index()]?];
        let Op::Full(Scalar::Int(number)) = maker.op else { return None };
        i64::try_from(number).ok()
    }
}
