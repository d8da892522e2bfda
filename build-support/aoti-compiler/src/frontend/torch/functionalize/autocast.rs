//! Regions of automatic casts (`torch.autocast`): makes the casts that PyTorch's dispatcher makes on the processor.
//!
//! A program states such a region as a body whose calls have types that their operands alone do not give. Knows which
//! operators cast their operands to what, not what they compute. Where the lists fall behind PyTorch's, a result has
//! not the type that the program states, which is an error.

use super::super::rules::context::common_type;
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Output, Program, TensorMeta};

/// What an operator's floating-point operands are cast to, except those of `f64`, which stay.
enum Policy {
    /// The region's type: products, which half types are for.
    Region,
    /// `f32`: sums of many numbers and what overflows half types.
    Single,
    /// The widest of the operands.
    Widest,
    /// Nothing is cast.
    Keep,
}

fn policy(target: &str) -> Policy {
    let name = target.strip_prefix("aten.").and_then(|name| name.split('.').next());
    match name.unwrap_or_default() {
        "conv1d"
        | "conv2d"
        | "conv3d"
        | "conv_tbc"
        | "conv_transpose1d"
        | "conv_transpose2d"
        | "conv_transpose3d"
        | "_convolution"
        | "bmm"
        | "mm"
        | "baddbmm"
        | "addmm"
        | "addbmm"
        | "linear"
        | "matmul"
        | "linalg_vecdot"
        | "prelu"
        | "scaled_dot_product_attention"
        | "einsum"
        | "tensordot"
        | "chain_matmul"
        | "linalg_multi_dot"
        | "_native_multi_head_attention" => Policy::Region,
        "avg_pool3d"
        | "binary_cross_entropy"
        | "grid_sampler"
        | "prod"
        | "quantile"
        | "nanquantile"
        | "cdist"
        | "trace"
        | "mse_loss"
        | "cosine_embedding_loss"
        | "nll_loss"
        | "nll_loss2d"
        | "nll_loss_nd"
        | "hinge_embedding_loss"
        | "poisson_nll_loss"
        | "smooth_l1_loss"
        | "cross_entropy_loss"
        | "l1_loss"
        | "huber_loss"
        | "margin_ranking_loss"
        | "soft_margin_loss"
        | "triplet_margin_loss"
        | "multi_margin_loss"
        | "ctc_loss"
        | "kl_div"
        | "multilabel_margin_loss"
        | "binary_cross_entropy_with_logits" => Policy::Single,
        "stack" | "cat" | "index_copy" => Policy::Widest,
        _ => Policy::Keep,
    }
}

/// The type of a region that casts on the processor.
pub(crate) fn region_type(call: &Call) -> Option<DType> {
    if call.target != "higher_order.wrap_with_autocast" {
        return None;
    }
    let [(_, Arg::Str(device)), (_, dtype), (_, Arg::Bool(true)), ..] = call.args.as_slice() else {
        return None;
    };
    if device != "cpu" {
        return None;
    }
    // What PyTorch takes by default.
    let default = matches!(dtype, Arg::None).then_some(DType::Bf16);
    if let Arg::DType(dtype) = dtype { Some(*dtype) } else { default }
}

/// Puts a cast before each operand that a region of this type casts.
pub(crate) fn insert_casts(body: &mut Program, region: DType) {
    let calls = std::mem::take(&mut body.calls);
    for mut call in calls {
        let mut names = operands(&call);
        // `f64` takes part in nothing of this; integers neither.
        names.retain(|name| {
            body.tensors.get(name).is_some_and(|meta| meta.dtype.is_float() && meta.dtype != DType::F64)
        });
        let types = names.iter().map(|name| body.tensors[name].dtype);
        let wanted = match policy(&call.target) {
            Policy::Region => Some(region),
            Policy::Single => Some(DType::F32),
            // Where there is no common type, the call itself is refused.
            Policy::Widest => common_type(types).ok().flatten(),
            Policy::Keep => None,
        };
        for name in names {
            let meta = &body.tensors[&name];
            let Some(dtype) = wanted.filter(|dtype| *dtype != meta.dtype) else { continue };
            let converted = format!("{name}.cast.{}", body.calls.len());
            let meta = TensorMeta { dtype, ..meta.clone() };
            body.tensors.insert(converted.clone(), meta);
            let args =
                vec![("self".to_owned(), Arg::Tensor(name.clone())), ("dtype".to_owned(), Arg::DType(dtype))];
            replace(&mut call, &name, &converted);
            body.calls.push(Call {
                target: "aten.to.dtype".to_owned(),
                args,
                outputs: vec![Output::Tensor(converted)],
                origin: call.origin.clone(),
            });
        }
        body.calls.push(call);
    }
}

/// The tensors that a call is given, each once.
fn operands(call: &Call) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, arg) in &call.args {
        let given: Vec<&String> = if let Arg::Tensor(name) = arg {
            vec![name]
        } else if let Arg::Tensors(list) = arg {
            list.iter().flatten().collect()
        } else {
            Vec::new()
        };
        for name in given {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

fn replace(call: &mut Call, from: &str, to: &str) {
    for (_, arg) in &mut call.args {
        let given: Vec<&mut String> = if let Arg::Tensor(name) = arg {
            vec![name]
        } else if let Arg::Tensors(list) = arg {
            list.iter_mut().flatten().collect()
        } else {
            Vec::new()
        };
        given.into_iter().filter(|name| *name == from).for_each(|name| *name = to.to_owned());
    }
}
