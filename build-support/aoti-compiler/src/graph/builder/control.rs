//! Values read from data, conditions of the run, branches and loops.

use super::{Builder, Built, ensure};
use crate::dtype::DType;
use crate::graph::{Graph, Op, TensorType, ValueId};
use crate::symbolic::Symbol;

impl Builder {
    /// Reads a one-element integer tensor into a size symbol.
    pub fn read(&mut self, x: ValueId, symbol: Symbol) -> Built<()> {
        ensure!(self.ty(x).numel().is(1), "only a one-element tensor can be read into a size");
        let x = self.cast(x, DType::I64);
        let x = self.reshape(x, &[])?;
        self.push(Op::Read(symbol), &[x], vec![]);
        self.read.insert(symbol);
        Ok(())
    }

    /// The run fails with the message where the one-element operand is false.
    pub fn assert(&mut self, x: ValueId, message: &str) -> Built<()> {
        ensure!(self.ty(x).numel().is(1), "only a one-element tensor can be asserted");
        let x = self.cast(x, DType::Bool);
        let x = self.reshape(x, &[])?;
        self.push(Op::Assert(self.placed(message)), &[x], vec![]);
        Ok(())
    }

    /// Runs one of two graphs of equal interface.
    pub fn cond(
        &mut self,
        predicate: ValueId,
        then: Graph,
        otherwise: Graph,
        operands: &[ValueId],
    ) -> Built<Vec<ValueId>> {
        ensure!(self.ty(predicate).numel().is(1), "the predicate must have one element");
        self.check_body(&then, operands)?;
        self.check_body(&otherwise, operands)?;
        let types = output_types(&then);
        ensure!(types == output_types(&otherwise), "the two branches give different types");
        let predicate = self.cast(predicate, DType::Bool);
        let predicate = self.reshape(predicate, &[])?;
        let inputs = [&[predicate], operands].concat();
        let op = Op::Cond { then: Box::new(then), otherwise: Box::new(otherwise) };
        Ok(self.push(op, &inputs, types))
    }

    /// Repeats `body` while `condition` holds; the first `carried` operands are carried.
    pub fn while_loop(
        &mut self,
        condition: Graph,
        body: Graph,
        operands: &[ValueId],
        carried: usize,
    ) -> Built<Vec<ValueId>> {
        self.check_body(&condition, operands)?;
        self.check_body(&body, operands)?;
        let types: Vec<TensorType> =
            operands[..carried.min(operands.len())].iter().map(|value| self.ty(*value).clone()).collect();
        ensure!(output_types(&body) == types, "the loop body changes the types of carried values");
        let verdict = output_types(&condition);
        ensure!(
            verdict.len() == 1 && verdict[0].dtype == DType::Bool && verdict[0].numel().is(1),
            "the loop condition must give one boolean"
        );
        let op = Op::While { condition: Box::new(condition), body: Box::new(body), carried };
        Ok(self.push(op, operands, types))
    }

    fn check_body(&self, body: &Graph, operands: &[ValueId]) -> Built<()> {
        ensure!(
            body.inputs.len() == operands.len(),
            "body `{}` takes {} values, {} are given",
            body.name,
            body.inputs.len(),
            operands.len()
        );
        for (input, operand) in body.inputs.iter().zip(operands) {
            ensure!(
                body.ty(input.value) == self.ty(*operand),
                "input `{}` of body `{}` is {:?}, given is {:?}",
                input.name,
                body.name,
                body.ty(input.value),
                self.ty(*operand)
            );
        }
        Ok(())
    }
}

fn output_types(graph: &Graph) -> Vec<TensorType> {
    graph.outputs.iter().map(|output| graph.ty(output.value).clone()).collect()
}
