//! What operators check of their data: a column of the table of operators, which has an entry for each of them.
//!
//! It is about the elements of tensors alone. Sizes and types are checked while a program is read, and so are numbers, unless they are
//! computed (`unsupported/dynamic.rs`). What PyTorch's kernel for processors refuses fails a run here, with a message that names the operator, what
//! it requires and the user's line; what the kernel takes, a run takes. The walker makes the checks that compare each element of an
//! argument with a bound; indices are checked where they are used, in the kernel that reads them.

use super::operand::Operand;
use super::{Args, Context, Formula, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, IntBinary, Op, Relation, Routine, ValueId};
use crate::symbolic::Expr;

/// What an operator requires of the elements of its operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Check {
    /// Each element of an argument lies between two bounds, which are included: NaN does not.
    Within {
        /// The argument.
        argument: &'static str,
        /// The lower bound.
        least: f64,
        /// The upper bound.
        most: f64,
    },
    /// Indices in an argument are within the axis that they index.
    Index(&'static str),
    /// What the rule itself checks.
    Own(&'static str),
}

use Check::{Index, Own, Within};

impl Check {
    /// What holds of the data of a call that is not refused.
    pub fn requirement(&self) -> String {
        match self {
            Within { argument, least: 0.0, most: f64::INFINITY } => {
                format!("each element of `{argument}` is at least 0")
            }
            Within { argument, least, most } => {
                format!("each element of `{argument}` is between {least} and {most}")
            }
            Index(argument) => format!("`{argument}` is within its axis"),
            Own(words) => (*words).to_owned(),
        }
    }
}

/// What an operator, named without its overload, checks; `None` where the table has no entry.
pub(crate) fn of_operator(operator: &str) -> Option<&'static [Check]> {
    let entry = CHECKED.binary_search_by(|(name, _)| (*name).cmp(operator));
    match entry {
        Ok(entry) => Some(CHECKED[entry].1),
        Err(_) => UNCHECKED.binary_search(&operator).is_ok().then_some(&[]),
    }
}

impl Context {
    /// Makes the checks of bounds that the operator of a call has.
    pub(crate) fn check_data(&mut self, rule: &str, a: &Args) -> Result<(), RuleError> {
        let operator = rule.rsplit_once('.').map_or(rule, |(operator, _)| operator);
        for check in of_operator(operator).unwrap_or_default() {
            let Within { argument, least, most } = check else { continue };
            if !a.has(argument) {
                continue;
            }
            let (Operand::Tensor(x) | Operand::Computed(x, _)) = a.number(argument)? else { continue };
            let wide = self.b.cast(x, self.b.dtype(x).compute());
            let above = Formula::from(wide).ge(*least);
            let within =
                if *most == f64::INFINITY { above } else { above.and(Formula::from(wide).le(*most)) };
            let within = self.formula(DType::Bool, &within)?;
            self.assert_all(within, &format!("{operator}: {}", check.requirement()))?;
        }
        Ok(())
    }

    /// Pivots of a matrix of so many rows are numbers of rows, from 1 on; those of blocks of two may be negative. Nothing is checked
    /// of what a factorisation gave.
    pub(crate) fn check_pivots(
        &mut self,
        a: &Args,
        pivots: ValueId,
        rows: &Expr,
        signed: bool,
    ) -> Result<(), RuleError> {
        if self.is_of_factorisation(pivots) {
            return Ok(());
        }
        let pivots = self.b.cast(pivots, DType::I64);
        let least = if signed {
            self.with_number(Relation::Ne, pivots, 0i64)?
        } else {
            self.with_number(Relation::Ge, pivots, 1i64)?
        };
        let bound = self.b.index(rows.clone(), &[]);
        let mut within = self.binary(Relation::Le, pivots, bound)?;
        if signed {
            let opposite = self.with_number(BinaryOp::Mul, pivots, -1i64)?;
            let other = self.binary(Relation::Le, opposite, bound)?;
            within = self.binary(IntBinary::And, within, other)?;
        }
        let valid = self.binary(IntBinary::And, least, within)?;
        self.assert_all(valid, &format!("{}: pivots must be between 1 and the number of rows", a.target()))
    }

    fn is_of_factorisation(&self, mut value: ValueId) -> bool {
        while let Some(node) = self.b.producer(value) {
            if let Op::Routine(routine) = &node.op {
                return matches!(routine, Routine::Lu | Routine::Ldl);
            }
            let (Op::Cast | Op::View(_)) = &node.op else { return false };
            value = node.inputs[0];
        }
        false
    }
}

/// Operators that check something, by name.
const CHECKED: &[(&str, &[Check])] = &[
    ("aten._assert_async", &[Own("what the program asserts holds")]),
    ("aten._ctc_loss", &[Own("lengths are within the sequences and within the targets")]),
    (
        "aten._embedding_bag",
        &[Index("indices"), Own("offsets begin with 0, do not fall and are not beyond the indices")],
    ),
    (
        "aten._embedding_bag_forward_only",
        &[Index("indices"), Own("offsets begin with 0, do not fall and are not beyond the indices")],
    ),
    ("aten._functional_assert_async", &[Own("what the program asserts holds")]),
    ("aten._histogramdd_bin_edges", &[Own("the range that is taken from elements is finite")]),
    ("aten._histogramdd_from_bin_cts", &[Own("the range that is taken from elements is finite")]),
    (
        "aten._index_put_impl",
        &[Index("indices"), Own("a mask has as many true elements as there are values, unless there is one")],
    ),
    ("aten._linalg_check_errors", &[Own("`info` is 0")]),
    ("aten._linalg_eigh", &[Own("elements are finite")]),
    ("aten._linalg_solve_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten._linalg_svd", &[Own("elements are finite")]),
    ("aten._unsafe_index", &[Index("indices")]),
    (
        "aten._unsafe_index_put",
        &[Index("indices"), Own("a mask has as many true elements as there are values, unless there is one")],
    ),
    ("aten._unsafe_masked_index", &[Index("indices")]),
    ("aten._unsafe_masked_index_put_accumulate", &[Index("indices")]),
    ("aten.bernoulli", &[Own("probabilities are between 0 and 1")]),
    (
        "aten.binary_cross_entropy",
        &[
            Within { argument: "self", least: 0.0, most: 1.0 },
            Within { argument: "target", least: 0.0, most: 1.0 },
        ],
    ),
    ("aten.bincount", &[Own("numbers are not negative")]),
    ("aten.cholesky", &[Own("the matrix is positive definite")]),
    ("aten.cholesky_inverse", &[Own("no element of the diagonal is zero")]),
    ("aten.cross_entropy_loss", &[Index("target")]),
    ("aten.ctc_loss", &[Own("lengths are within the sequences and within the targets")]),
    ("aten.div", &[Own("integers are not divided by zero")]),
    ("aten.embedding", &[Index("indices")]),
    (
        "aten.embedding_bag",
        &[Index("indices"), Own("offsets begin with 0, do not fall and are not beyond the indices")],
    ),
    ("aten.embedding_dense_backward", &[Index("indices")]),
    ("aten.embedding_renorm", &[Index("indices")]),
    ("aten.embedding_renorm_", &[Index("indices")]),
    (
        "aten.fake_quantize_per_channel_affine",
        &[Own("zero points that are integers are within the range of quantised numbers")],
    ),
    (
        "aten.fake_quantize_per_channel_affine_cachemask",
        &[Own("zero points that are integers are within the range of quantised numbers")],
    ),
    ("aten.floor_divide", &[Own("integers are not divided by zero")]),
    ("aten.fmod", &[Own("integers are not divided by zero")]),
    ("aten.gather", &[Index("index")]),
    ("aten.histc", &[Own("the range that is taken from elements is finite")]),
    ("aten.histogram", &[Own("the range that is taken from elements is finite")]),
    ("aten.histogramdd", &[Own("the range that is taken from elements is finite")]),
    ("aten.index", &[Index("indices")]),
    ("aten.index_add", &[Index("index")]),
    ("aten.index_copy", &[Index("index")]),
    ("aten.index_fill", &[Index("index")]),
    (
        "aten.index_put",
        &[Index("indices"), Own("a mask has as many true elements as there are values, unless there is one")],
    ),
    ("aten.index_reduce", &[Index("index")]),
    ("aten.index_select", &[Index("index")]),
    ("aten.inverse", &[Own("the matrix is not singular")]),
    ("aten.linalg_cholesky", &[Own("the matrix is positive definite")]),
    ("aten.linalg_cholesky_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten.linalg_cond", &[Own("elements are finite, where singular values or eigenvalues are computed")]),
    ("aten.linalg_eig", &[Own("elements are finite")]),
    ("aten.linalg_eigh", &[Own("elements are finite")]),
    ("aten.linalg_eigvals", &[Own("elements are finite")]),
    ("aten.linalg_eigvalsh", &[Own("elements are finite")]),
    ("aten.linalg_inv", &[Own("the matrix is not singular")]),
    ("aten.linalg_inv_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten.linalg_ldl_factor", &[Own("`info` is 0")]),
    ("aten.linalg_ldl_factor_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten.linalg_ldl_solve", &[Own("pivots are the numbers of rows, negative for blocks of two")]),
    ("aten.linalg_lu_factor", &[Own("`info` is 0")]),
    ("aten.linalg_lu_factor_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten.linalg_lu_solve", &[Own("pivots are the numbers of rows")]),
    (
        "aten.linalg_matrix_norm",
        &[Own("elements are finite, where singular values or eigenvalues are computed")],
    ),
    ("aten.linalg_matrix_power", &[Own("the matrix is not singular, where the exponent is negative")]),
    (
        "aten.linalg_matrix_rank",
        &[Own("elements are finite, where singular values or eigenvalues are computed")],
    ),
    ("aten.linalg_norm", &[Own("elements are finite, where singular values or eigenvalues are computed")]),
    ("aten.linalg_pinv", &[Own("elements are finite, where singular values or eigenvalues are computed")]),
    ("aten.linalg_solve", &[Own("the matrix is not singular")]),
    ("aten.linalg_solve_ex", &[Own("with `check_errors`, `info` is 0")]),
    ("aten.linalg_svd", &[Own("elements are finite")]),
    ("aten.linalg_svdvals", &[Own("elements are finite")]),
    ("aten.linalg_tensorinv", &[Own("the matrix is not singular")]),
    ("aten.linalg_tensorsolve", &[Own("the matrix is not singular")]),
    ("aten.lu_solve", &[Own("pivots are the numbers of rows")]),
    ("aten.lu_unpack", &[Own("pivots are the numbers of rows")]),
    ("aten.masked_scatter", &[Own("the source has an element for each true one of the mask")]),
    ("aten.matrix_power", &[Own("the matrix is not singular, where the exponent is negative")]),
    ("aten.max_pool2d_with_indices_backward", &[Index("indices")]),
    ("aten.max_pool3d_with_indices_backward", &[Index("indices")]),
    ("aten.max_unpool2d", &[Index("indices")]),
    ("aten.max_unpool3d", &[Index("indices")]),
    ("aten.multi_margin_loss", &[Index("target")]),
    ("aten.multilabel_margin_loss", &[Own("targets are at least -1, and below the number of classes")]),
    (
        "aten.multilabel_margin_loss_forward",
        &[Own("targets are at least -1, and below the number of classes")],
    ),
    ("aten.multinomial", &[Own("weights are finite and not negative, and not all of them are zero")]),
    ("aten.nanquantile", &[Within { argument: "q", least: 0.0, most: 1.0 }]),
    ("aten.nll_loss", &[Index("target")]),
    ("aten.nll_loss2d", &[Index("target")]),
    ("aten.nll_loss2d_backward", &[Index("target")]),
    ("aten.nll_loss2d_forward", &[Index("target")]),
    ("aten.nll_loss_backward", &[Index("target")]),
    ("aten.nll_loss_forward", &[Index("target")]),
    ("aten.nll_loss_nd", &[Index("target")]),
    ("aten.normal", &[Within { argument: "std", least: 0.0, most: f64::INFINITY }]),
    ("aten.normal_functional", &[Within { argument: "std", least: 0.0, most: f64::INFINITY }]),
    ("aten.one_hot", &[Own("classes are not negative, and below their number")]),
    ("aten.pinverse", &[Own("elements are finite, where singular values or eigenvalues are computed")]),
    ("aten.poisson", &[Own("rates are finite and not negative")]),
    ("aten.pow", &[Own("integers have no negative integer as exponent")]),
    ("aten.put", &[Index("index")]),
    ("aten.quantile", &[Within { argument: "q", least: 0.0, most: 1.0 }]),
    ("aten.remainder", &[Own("integers are not divided by zero")]),
    ("aten.repeat_interleave", &[Own("counts are not negative, and their sum is `output_size`")]),
    ("aten.scatter", &[Index("index")]),
    ("aten.scatter_add", &[Index("index")]),
    ("aten.scatter_reduce", &[Index("index")]),
    ("aten.searchsorted", &[Index("sorter")]),
    ("aten.segment_reduce", &[Own("lengths are not negative, and segments are within the axis")]),
    ("aten.svd", &[Own("elements are finite")]),
    ("aten.take", &[Index("index")]),
    ("aten.take_along_dim", &[Index("indices")]),
    ("quantized_decomposed.quantize_per_tensor", &[Own("a scale in a tensor is not zero")]),
    ("torchvision.ps_roi_align", &[Own("regions are of images of the batch")]),
    ("torchvision.ps_roi_pool", &[Own("regions are of images of the batch")]),
    ("torchvision.roi_align", &[Own("regions are of images of the batch")]),
    ("torchvision.roi_pool", &[Own("regions are of images of the batch")]),
];

/// Operators that give results for all elements, by name.
#[rustfmt::skip]
const UNCHECKED: &[&str] = &[
    "_c10d_functional.all_gather_into_tensor", "_c10d_functional.all_gather_into_tensor_coalesced",
    "_c10d_functional.all_gather_into_tensor_out", "_c10d_functional.all_reduce",
    "_c10d_functional.all_reduce_coalesced", "_c10d_functional.all_to_all_single", "_c10d_functional.broadcast",
    "_c10d_functional.reduce_scatter_tensor", "_c10d_functional.reduce_scatter_tensor_coalesced",
    "_c10d_functional.reduce_scatter_tensor_out", "_c10d_functional.wait_tensor", "_c10d_functional.wait_tensors",
    "_c10d_functional_autograd.all_gather_into_tensor", "_c10d_functional_autograd.all_to_all_single",
    "_c10d_functional_autograd.reduce_scatter_tensor",
    "aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool3d",
    "aten._adaptive_avg_pool3d_backward", "aten._aminmax", "aten._batch_norm_no_update",
    "aten._batch_norm_with_update", "aten._batch_norm_with_update_functional", "aten._cast_Byte", "aten._cast_Char",
    "aten._cast_Double", "aten._cast_Float", "aten._cast_Half", "aten._cast_Int", "aten._cast_Long",
    "aten._cast_Short", "aten._cdist_forward", "aten._chunk_cat", "aten._conj", "aten._conj_copy",
    "aten._conj_physical", "aten._convolution", "aten._efficientzerotensor", "aten._euclidean_dist",
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "aten._fft_c2c", "aten._fft_c2r",
    "aten._fft_r2c", "aten._fused_rms_norm", "aten._fw_primal", "aten._grid_sampler_2d_cpu_fallback",
    "aten._grouped_mm", "aten._histogramdd_from_bin_tensors", "aten._int_mm", "aten._is_all_true",
    "aten._is_any_true", "aten._linalg_det", "aten._linalg_slogdet", "aten._local_scalar_dense", "aten._log_softmax",
    "aten._log_softmax_backward_data", "aten._logcumsumexp", "aten._native_batch_norm_legit",
    "aten._native_batch_norm_legit_functional", "aten._native_batch_norm_legit_no_training",
    "aten._native_multi_head_attention", "aten._neg_view", "aten._pad_circular", "aten._pdist_forward", "aten._prelu_kernel",
    "aten._prelu_kernel_backward", "aten._reshape_alias", "aten._reshape_alias_copy", "aten._reshape_copy",
    "aten._safe_softmax", "aten._sample_dirichlet", "aten._scaled_dot_product_attention_math",
    "aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu", "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._scaled_mm", "aten._softmax", "aten._softmax_backward_data", "aten._standard_gamma", "aten._to_copy",
    "aten._transformer_encoder_layer_fwd", "aten._trilinear", "aten._unique", "aten._unique2", "aten._unsafe_view",
    "aten._upsample_bicubic2d_aa", "aten._upsample_bilinear2d_aa", "aten._upsample_lanczos2d_aa",
    "aten._upsample_nearest_exact1d", "aten._upsample_nearest_exact1d_backward", "aten._upsample_nearest_exact2d",
    "aten._upsample_nearest_exact2d_backward", "aten._upsample_nearest_exact3d",
    "aten._upsample_nearest_exact3d_backward", "aten._weight_int8pack_mm", "aten._weight_norm",
    "aten._weight_norm_interface", "aten.abs", "aten.acos", "aten.acosh", "aten.adaptive_avg_pool1d",
    "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d", "aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d",
    "aten.adaptive_max_pool3d", "aten.add", "aten.addbmm", "aten.addcdiv", "aten.addcmul", "aten.addmm", "aten.addmv",
    "aten.addr", "aten.adjoint", "aten.affine_grid_generator", "aten.alias", "aten.alias_copy", "aten.all",
    "aten.alpha_dropout", "aten.amax", "aten.amin", "aten.aminmax", "aten.angle", "aten.any", "aten.arange",
    "aten.argmax", "aten.argmin", "aten.argsort", "aten.argwhere", "aten.as_strided", "aten.as_strided_copy",
    "aten.as_strided_scatter", "aten.asin", "aten.asinh", "aten.atan", "aten.atan2", "aten.atanh", "aten.atleast_1d",
    "aten.atleast_2d", "aten.atleast_3d", "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool2d_backward",
    "aten.avg_pool3d", "aten.avg_pool3d_backward", "aten.baddbmm", "aten.bartlett_window", "aten.batch_norm",
    "aten.bilinear", "aten.binary_cross_entropy_backward", "aten.binary_cross_entropy_with_logits",
    "aten.bitwise_and", "aten.bitwise_left_shift", "aten.bitwise_not", "aten.bitwise_or", "aten.bitwise_right_shift",
    "aten.bitwise_xor", "aten.blackman_window", "aten.block_diag", "aten.bmm", "aten.broadcast_tensors",
    "aten.broadcast_to", "aten.bucketize", "aten.cartesian_prod", "aten.cat", "aten.cauchy", "aten.cdist",
    "aten.ceil", "aten.celu", "aten.chain_matmul", "aten.channel_shuffle", "aten.cholesky_solve", "aten.chunk",
    "aten.clamp", "aten.clamp_max", "aten.clamp_min", "aten.clone", "aten.col2im", "aten.column_stack",
    "aten.combinations", "aten.complex", "aten.concat", "aten.concatenate", "aten.conj", "aten.conj_physical",
    "aten.constant_pad_nd", "aten.contiguous", "aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.conv_tbc",
    "aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d", "aten.convolution",
    "aten.convolution_backward", "aten.copy", "aten.copysign", "aten.corrcoef", "aten.cos", "aten.cosh",
    "aten.cosine_embedding_loss", "aten.cosine_similarity", "aten.count_nonzero", "aten.cov", "aten.cross",
    "aten.cudnn_batch_norm", "aten.cummax", "aten.cummin", "aten.cumprod", "aten.cumsum", "aten.cumulative_trapezoid",
    "aten.deg2rad", "aten.det", "aten.detach", "aten.detach_", "aten.detach_copy", "aten.diag", "aten.diag_embed",
    "aten.diagflat", "aten.diagonal", "aten.diagonal_backward", "aten.diagonal_copy", "aten.diagonal_scatter",
    "aten.diff", "aten.digamma", "aten.dist", "aten.dot", "aten.dropout", "aten.dsplit", "aten.dstack", "aten.einsum",
    "aten.elu", "aten.elu_backward", "aten.empty", "aten.empty_like", "aten.empty_permuted", "aten.empty_strided",
    "aten.eq", "aten.equal", "aten.erf", "aten.erfc", "aten.erfinv", "aten.exp", "aten.exp2", "aten.expand",
    "aten.expand_as", "aten.expand_copy", "aten.expm1", "aten.exponential", "aten.eye",
    "aten.fake_quantize_per_tensor_affine", "aten.fake_quantize_per_tensor_affine_cachemask",
    "aten.feature_alpha_dropout", "aten.feature_dropout", "aten.fft_fft", "aten.fft_fft2", "aten.fft_fftfreq",
    "aten.fft_fftn", "aten.fft_fftshift", "aten.fft_hfft", "aten.fft_hfft2", "aten.fft_hfftn", "aten.fft_ifft",
    "aten.fft_ifft2", "aten.fft_ifftn", "aten.fft_ifftshift", "aten.fft_ihfft", "aten.fft_ihfft2", "aten.fft_ihfftn",
    "aten.fft_irfft", "aten.fft_irfft2", "aten.fft_irfftn", "aten.fft_rfft", "aten.fft_rfft2", "aten.fft_rfftfreq",
    "aten.fft_rfftn", "aten.fill", "aten.fill_diagonal", "aten.flatten", "aten.flip", "aten.fliplr", "aten.flipud",
    "aten.float_power", "aten.floor", "aten.fmax", "aten.fmin", "aten.frac", "aten.frexp", "aten.frobenius_norm",
    "aten.full", "aten.full_like", "aten.gcd", "aten.ge", "aten.gelu", "aten.gelu_backward", "aten.geometric",
    "aten.geqrf", "aten.ger", "aten.glu", "aten.glu_backward", "aten.gradient", "aten.grid_sampler",
    "aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.group_norm", "aten.gru", "aten.gru_cell", "aten.gt",
    "aten.hamming_window", "aten.hann_window", "aten.hardshrink", "aten.hardshrink_backward", "aten.hardsigmoid",
    "aten.hardsigmoid_backward", "aten.hardswish", "aten.hardswish_backward", "aten.hardtanh",
    "aten.hardtanh_backward", "aten.hash_tensor", "aten.heaviside", "aten.hinge_embedding_loss", "aten.hsplit",
    "aten.hstack", "aten.huber_loss", "aten.huber_loss_backward", "aten.hypot", "aten.i0", "aten.igamma",
    "aten.igammac", "aten.im2col", "aten.imag", "aten.inner", "aten.instance_norm", "aten.isclose", "aten.isfinite",
    "aten.isin", "aten.isinf", "aten.isnan", "aten.isneginf", "aten.isposinf", "aten.isreal", "aten.istft",
    "aten.item", "aten.kaiser_window", "aten.kl_div", "aten.kron", "aten.kthvalue", "aten.l1_loss", "aten.layer_norm",
    "aten.lcm", "aten.ldexp", "aten.le", "aten.leaky_relu", "aten.leaky_relu_backward", "aten.lerp", "aten.lgamma",
    "aten.lift", "aten.lift_fresh", "aten.lift_fresh_copy", "aten.linalg_cross", "aten.linalg_det",
    "aten.linalg_diagonal", "aten.linalg_householder_product", "aten.linalg_lu", "aten.linalg_matmul",
    "aten.linalg_matrix_exp", "aten.linalg_multi_dot", "aten.linalg_qr", "aten.linalg_slogdet",
    "aten.linalg_solve_triangular", "aten.linalg_vander", "aten.linalg_vecdot", "aten.linalg_vector_norm",
    "aten.linear", "aten.linspace", "aten.log", "aten.log10", "aten.log1p", "aten.log2", "aten.log_normal",
    "aten.log_sigmoid", "aten.log_sigmoid_backward", "aten.log_sigmoid_forward", "aten.log_softmax", "aten.logaddexp",
    "aten.logaddexp2", "aten.logcumsumexp", "aten.logdet", "aten.logical_and", "aten.logical_not", "aten.logical_or",
    "aten.logical_xor", "aten.logit", "aten.logit_backward", "aten.logspace", "aten.logsumexp", "aten.lstm",
    "aten.lstm_cell", "aten.lt", "aten.mH", "aten.mT", "aten.margin_ranking_loss", "aten.masked_fill",
    "aten.masked_select", "aten.matmul", "aten.matrix_H", "aten.matrix_exp", "aten.max", "aten.max_pool1d",
    "aten.max_pool1d_with_indices", "aten.max_pool2d", "aten.max_pool2d_with_indices", "aten.max_pool3d",
    "aten.max_pool3d_with_indices", "aten.maximum", "aten.mean", "aten.median", "aten.meshgrid", "aten.min",
    "aten.minimum", "aten.miopen_batch_norm", "aten.mish", "aten.mish_backward", "aten.mm", "aten.mode",
    "aten.moveaxis", "aten.movedim", "aten.mse_loss", "aten.mse_loss_backward", "aten.msort", "aten.mul", "aten.mv",
    "aten.mvlgamma", "aten.nan_to_num", "aten.nanmean", "aten.nanmedian", "aten.nansum", "aten.narrow",
    "aten.narrow_copy", "aten.native_batch_norm", "aten.native_batch_norm_backward", "aten.native_channel_shuffle",
    "aten.native_dropout", "aten.native_dropout_backward", "aten.native_group_norm",
    "aten.native_group_norm_backward", "aten.native_layer_norm", "aten.native_layer_norm_backward",
    "aten.native_norm", "aten.ne", "aten.neg", "aten.new_empty", "aten.new_empty_strided", "aten.new_full",
    "aten.new_ones", "aten.new_zeros", "aten.nextafter", "aten.nonzero", "aten.nonzero_numpy", "aten.nonzero_static",
    "aten.norm", "aten.norm_except_dim", "aten.numpy_T", "aten.ones", "aten.ones_like", "aten.orgqr", "aten.ormqr",
    "aten.outer", "aten.pad", "aten.pairwise_distance", "aten.pdist", "aten.permute", "aten.permute_copy",
    "aten.pin_memory", "aten.pixel_shuffle", "aten.pixel_unshuffle", "aten.poisson_nll_loss", "aten.polar",
    "aten.polygamma", "aten.positive", "aten.prelu", "aten.prod", "aten.promote_types", "aten.rad2deg", "aten.rand",
    "aten.rand_like", "aten.randint", "aten.randint_like", "aten.randn", "aten.randn_like", "aten.random",
    "aten.randperm", "aten.range", "aten.ravel", "aten.real", "aten.reciprocal", "aten.reflection_pad1d",
    "aten.reflection_pad1d_backward", "aten.reflection_pad2d", "aten.reflection_pad2d_backward",
    "aten.reflection_pad3d", "aten.reflection_pad3d_backward", "aten.relu", "aten.relu6", "aten.renorm",
    "aten.repeat", "aten.replication_pad1d", "aten.replication_pad1d_backward", "aten.replication_pad2d",
    "aten.replication_pad2d_backward", "aten.replication_pad3d", "aten.replication_pad3d_backward", "aten.reshape",
    "aten.reshape_as", "aten.resolve_conj", "aten.resolve_neg", "aten.rms_norm", "aten.rnn_relu",
    "aten.rnn_relu_cell", "aten.rnn_tanh", "aten.rnn_tanh_cell", "aten.roll", "aten.rot90", "aten.round",
    "aten.row_stack", "aten.rrelu", "aten.rrelu_with_noise", "aten.rrelu_with_noise_backward",
    "aten.rrelu_with_noise_functional", "aten.rsqrt", "aten.rsub", "aten.scalar_tensor",
    "aten.scaled_dot_product_attention", "aten.select", "aten.select_backward", "aten.select_copy",
    "aten.select_scatter", "aten.selu", "aten.sigmoid", "aten.sigmoid_backward", "aten.sign", "aten.signbit",
    "aten.silu", "aten.silu_backward", "aten.sin", "aten.sinc", "aten.sinh", "aten.slice", "aten.slice_backward",
    "aten.slice_copy", "aten.slice_scatter", "aten.slogdet", "aten.smooth_l1_loss", "aten.smooth_l1_loss_backward",
    "aten.soft_margin_loss", "aten.soft_margin_loss_backward", "aten.softmax", "aten.softplus",
    "aten.softplus_backward", "aten.softshrink", "aten.softshrink_backward", "aten.sort", "aten.special_airy_ai",
    "aten.special_bessel_j0", "aten.special_bessel_j1", "aten.special_bessel_y0", "aten.special_bessel_y1",
    "aten.special_chebyshev_polynomial_t", "aten.special_chebyshev_polynomial_u",
    "aten.special_chebyshev_polynomial_v", "aten.special_chebyshev_polynomial_w", "aten.special_entr",
    "aten.special_erfcx", "aten.special_hermite_polynomial_h", "aten.special_hermite_polynomial_he",
    "aten.special_i0e", "aten.special_i1", "aten.special_i1e", "aten.special_laguerre_polynomial_l",
    "aten.special_legendre_polynomial_p", "aten.special_log_ndtr", "aten.special_log_softmax",
    "aten.special_modified_bessel_i0", "aten.special_modified_bessel_i1", "aten.special_modified_bessel_k0",
    "aten.special_modified_bessel_k1", "aten.special_ndtr", "aten.special_ndtri", "aten.special_round",
    "aten.special_scaled_modified_bessel_k0", "aten.special_scaled_modified_bessel_k1",
    "aten.special_shifted_chebyshev_polynomial_t", "aten.special_shifted_chebyshev_polynomial_u",
    "aten.special_shifted_chebyshev_polynomial_v", "aten.special_shifted_chebyshev_polynomial_w",
    "aten.special_softmax", "aten.special_spherical_bessel_j0", "aten.special_xlog1py", "aten.special_zeta",
    "aten.split", "aten.split_copy", "aten.split_with_sizes", "aten.split_with_sizes_copy", "aten.sqrt",
    "aten.square", "aten.squeeze", "aten.squeeze_", "aten.squeeze_copy", "aten.stack", "aten.std", "aten.std_mean",
    "aten.stft", "aten.sub", "aten.sum", "aten.sum_to_size", "aten.swapaxes", "aten.swapaxes_", "aten.swapdims",
    "aten.swapdims_", "aten.t", "aten.t_", "aten.t_copy", "aten.tan", "aten.tanh", "aten.tanh_backward",
    "aten.tensor_split", "aten.tensordot", "aten.threshold", "aten.threshold_backward", "aten.tile", "aten.to",
    "aten.topk", "aten.trace", "aten.transpose", "aten.transpose_", "aten.transpose_copy", "aten.trapezoid",
    "aten.trapz", "aten.triangular_solve", "aten.tril", "aten.tril_indices", "aten.triplet_margin_loss", "aten.triu",
    "aten.triu_indices", "aten.trunc", "aten.type_as", "aten.unbind", "aten.unbind_copy", "aten.unflatten",
    "aten.unfold", "aten.unfold_backward", "aten.unfold_copy", "aten.uniform", "aten.unique_consecutive",
    "aten.unique_dim", "aten.unique_dim_consecutive", "aten.unsafe_chunk", "aten.unsafe_split",
    "aten.unsafe_split_with_sizes", "aten.unsqueeze", "aten.unsqueeze_", "aten.unsqueeze_copy",
    "aten.upsample_bicubic2d", "aten.upsample_bicubic2d_backward", "aten.upsample_bilinear2d",
    "aten.upsample_bilinear2d_backward", "aten.upsample_linear1d", "aten.upsample_linear1d_backward",
    "aten.upsample_nearest1d", "aten.upsample_nearest1d_backward", "aten.upsample_nearest2d",
    "aten.upsample_nearest2d_backward", "aten.upsample_nearest3d", "aten.upsample_nearest3d_backward",
    "aten.upsample_trilinear3d", "aten.upsample_trilinear3d_backward", "aten.vander", "aten.var", "aten.var_mean",
    "aten.vdot", "aten.view", "aten.view_as", "aten.view_as_complex", "aten.view_as_complex_copy",
    "aten.view_as_real", "aten.view_as_real_copy", "aten.view_copy", "aten.vsplit", "aten.vstack", "aten.where",
    "aten.xlogy", "aten.zero", "aten.zeros", "aten.zeros_like", "prims.convert_element_type", "prims.xor_sum",
    "quantized_decomposed._choose_qparams_per_token_asymmetric_impl", "quantized_decomposed.choose_qparams",
    "quantized_decomposed.choose_qparams_per_token", "quantized_decomposed.choose_qparams_per_token_asymmetric",
    "quantized_decomposed.choose_qparams_symmetric", "quantized_decomposed.convert_element_type",
    "quantized_decomposed.dequantize_per_channel", "quantized_decomposed.dequantize_per_channel_group",
    "quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_token",
    "quantized_decomposed.fake_quant_per_channel", "quantized_decomposed.quantize_per_channel",
    "quantized_decomposed.quantize_per_channel_group", "quantized_decomposed.quantize_per_token",
    "torchao.choose_qparams_affine", "torchao.dequantize_affine", "torchao.quantize_affine",
    "torchvision.deform_conv2d", "torchvision.nms", "transformers.grouped_mm_fallback",
];

#[cfg(test)]
mod tests {
    use super::super::Registry;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operator_says_what_it_checks() {
        let registry = Registry::new();
        let operators: BTreeSet<&str> = registry
            .names()
            .map(|name| name.rsplit_once('.').expect("a rule's name ends in its overload").0)
            .collect();
        let stated: Vec<&str> =
            CHECKED.iter().map(|(name, _)| *name).chain(UNCHECKED.iter().copied()).collect();
        let distinct: BTreeSet<&str> = stated.iter().copied().collect();
        let difference: Vec<_> = distinct.symmetric_difference(&operators).collect();
        assert!(
            difference.is_empty(),
            "entries without an operator, or operators without one: {difference:?}"
        );
        assert_eq!(stated.len(), operators.len(), "an operator has two entries");
        assert!(CHECKED.is_sorted_by_key(|(name, _)| *name) && UNCHECKED.is_sorted());
        assert!(CHECKED.iter().all(|(_, checks)| !checks.is_empty()));
    }
}
