//! The element type of floating-point results that nothing else decides, which `torch.set_default_dtype` sets.
//!
//! A program does not state under which one it was made. The first call shows it that has a floating-point result without
//! operands or an argument of such a type.

use super::run::tensor_names;
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Program};
use crate::frontend::torch::rules::DEFAULT_FLOAT;

/// The default type under which a program was made, as far as its results depend on it.
pub(super) fn default_float(program: &Program) -> DType {
    program.calls.iter().find_map(|call| shown_by(call, program)).unwrap_or(DEFAULT_FLOAT)
}

fn shown_by(call: &Call, program: &Program) -> Option<DType> {
    let is_stated = call.args.iter().any(|(_, arg)| matches!(arg, Arg::DType(_)));
    if is_stated || !call.target.starts_with("aten.") {
        return None;
    }
    let operands: Option<Vec<DType>> =
        tensor_names(call).into_iter().map(|name| Some(program.tensors.get(name)?.dtype)).collect();
    if operands?.into_iter().any(DType::is_float) {
        return None;
    }
    let result = program.tensors.get(call.outputs.first()?.tensor()?)?.dtype;
    matches!(result, DType::F16 | DType::Bf16 | DType::F32 | DType::F64).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::default_float;
    use crate::dtype::DType;
    use crate::frontend::torch::aten::text::parse;

    #[test]
    fn quotients_of_integers_show_the_default_type() {
        let shown = |calls: &str| {
            let text = format!("program {{ input %n: i64[3]\n input %x: f16[3]\n {calls}\n output %y }}");
            default_float(&parse(&text).expect("the text parses"))
        };
        assert_eq!(shown("%y: f64[3] = aten.div.Tensor(self = %n, other = %n)"), DType::F64);
        assert_eq!(shown("%y: bf16[2] = aten.rand.default(size = [2])"), DType::Bf16);
        // An operand or an argument decides of these.
        assert_eq!(shown("%y: f16[3] = aten.mul.Tensor(self = %n, other = %x)"), DType::F32);
        assert_eq!(shown("%y: f16[3] = aten.sum.dim_IntList(self = %n, dim = [], dtype = f16)"), DType::F32);
    }

    #[test]
    fn integers_become_numbers_of_the_default_type() {
        let text = "program { input %n: i64[3]
            %half: f64[3] = aten.div.Tensor(self = %n, other = 2)
            %root: f64[3] = aten.sqrt.default(self = %n)
            %times: f64[3] = aten.mul.Tensor(self = %n, other = 0.1)
            output %half
            output %root
            output %times }";
        let graph = super::super::functionalize(&parse(text).expect("the text parses")).unwrap();
        let n = crate::interpret::Tensor::from_i64(&[3], &[1, 2, 3]);
        let results = crate::interpret::evaluate(&graph, &[n]).unwrap();
        assert_eq!(results[1].to_f64(), [1.0, 2f64.sqrt(), 3f64.sqrt()]);
        assert_eq!(results[2].to_f64(), [0.1, 0.2, 3.0 * 0.1]);
    }
}
