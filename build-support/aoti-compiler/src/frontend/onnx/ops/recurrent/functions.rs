//! Functions of gates.

use crate::frontend::onnx::call::malformed;
use crate::frontend::torch::rules::{Formula, RuleError};

/// A function of gates.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Function {
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
    pub(super) fn take(
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

    pub(super) fn of(self, x: &Formula) -> Formula {
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
