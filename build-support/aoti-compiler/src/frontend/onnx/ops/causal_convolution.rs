//! Convolutions over time that carry the last elements from one call to the next.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, many, operators};
use crate::graph::Conv;
use crate::symbolic::Expr;

operators! { "";
    "CausalConvWithState" => causal_convolution,
}

fn causal_convolution(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, weight) = (c.tensor(0)?, c.tensor(1)?);
    let (shape, kernel) = (cx.b.shape(x), cx.b.shape(weight));
    if shape.len() != 3 || kernel.len() != 3 {
        return Err(malformed("it takes a batch of channels over time, and a weight for each channel"));
    }
    let channels = kernel[0].as_int().ok_or_else(|| unsupported("channels that are not fixed"))?;
    let before = &kernel[2] - 1;
    let padded = match c.opt_tensor(3)? {
        Some(past) => cx.b.cat(&[past, x], 2)?,
        None => {
            let none = (Expr::int(0), Expr::int(0));
            cx.b.pad(x, &[none.clone(), none, (before.clone(), Expr::int(0))], 0.0)?
        }
    };
    let length = cx.b.shape(padded)[2].clone();
    let conv = Conv {
        stride: vec![1],
        padding: vec![(0, 0)],
        dilation: vec![1],
        groups: channels,
        transposed: false,
        output_padding: vec![0],
    };
    let mut value = cx.b.conv(padded, weight, conv)?;
    value = cx.required_shape(value, &shape)?;
    if let Some(bias) = c.opt_tensor(2)? {
        let bias = cx.per_channel(bias, &shape)?;
        value = cx.add(value, bias)?;
    }
    match c.text("activation", "none")? {
        "none" => {}
        "silu" | "swish" => {
            let dtype = cx.b.dtype(value);
            value = cx.apply([value], dtype, |[x]| &x * x.sigmoid())?;
        }
        other => return Err(malformed(format!("the activation `{other}` is unknown"))),
    }
    let state = cx.b.slice(padded, 2, &(&length - &before), &before, 1)?;
    many([value, state])
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::Model;
    use crate::interpret::Tensor;

    #[test]
    fn the_last_elements_are_carried_on() {
        let model = Model::new(27)
            .input("x", Tensor::from_f32(&[1, 1, 2], &[3.0, 4.0]))
            .constant("w", &Tensor::from_f32(&[1, 1, 3], &[100.0, 10.0, 1.0]))
            .input("past", Tensor::from_f32(&[1, 1, 2], &[1.0, 2.0]))
            .node("CausalConvWithState", &["x", "w", "", "past"], &["y", "state"], &[]);
        let results = model.run(&["y", "state"]);
        assert_eq!(results[0].to_f64(), [123.0, 234.0]);
        assert_eq!(results[1].to_f64(), [3.0, 4.0]);
    }
}
