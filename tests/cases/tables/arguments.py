"""Programs in which an integer input is an argument of one operator: every argument that an exported program may leave open
and that `integers` does not have.

Values are those of `integers`; the exported program says which of them it takes, and what it gives for them.
"""

from tables.integers import VALUES

# Refused by name when compiled: open groups, both sizes of an adaptive pool open.

# Where PyTorch's own loops go as far as the number says, or its own numbers leave f32 or 64 bits before the result does.
FEW = tuple(value for value in VALUES if -1000 <= value < 100)

POOLING = [
    "F.adaptive_avg_pool2d(x[None], (2, n))",
    "torch.ops.aten._adaptive_avg_pool2d(x[None], [n, 2])",
    "F.adaptive_avg_pool3d(x[None, None], (1, n, 2))",
    "torch.ops.aten._adaptive_avg_pool3d(x[None, None], [1, n, 2])",
]

UPSAMPLING = [
    *(
        f"F.interpolate(x[None, None], {size}, mode='{mode}')"
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
        for size in ("n", "(4, n)")
    ),
    "F.interpolate(x[None], n, mode='nearest-exact')",
    "F.interpolate(x[None, None, None], (1, n, 4))",
    "F.interpolate(x[None, None, None], (1, n, 4), mode='nearest-exact')",
    "F.interpolate(x[None, None, None], (1, n, 4), mode='trilinear')",
    "torch.ops.aten.upsample_nearest1d(x[None], [n])",
    "torch.ops.aten.upsample_nearest2d(x[None, None], [n, 4])",
    "torch.ops.aten.upsample_nearest3d(x[None, None, None], [1, n, 4])",
    "torch.ops.aten._upsample_nearest_exact1d(x[None], [n])",
    "torch.ops.aten._upsample_nearest_exact2d(x[None, None], [n, 4])",
    "torch.ops.aten._upsample_nearest_exact3d(x[None, None, None], [1, n, 4])",
    "torch.ops.aten.upsample_linear1d(x[None], [n], False)",
    "torch.ops.aten.upsample_bilinear2d(x[None, None], [n, 4], True)",
    "torch.ops.aten.upsample_bicubic2d(x[None, None], [n, 4], False)",
    "torch.ops.aten.upsample_trilinear3d(x[None, None, None], [1, n, 4], False)",
    "F.affine_grid(w[:1, :2, :1].expand(1, 2, 3), (1, 1, n, 2)) + 1",
    "F.fold(x[None, :4], (n, 3), 2)",
    "F.max_unpool2d(x[None, :1, :4].view(1, 1, 2, 2), torch.arange(4).view(1, 1, 2, 2), 2, output_size=(n, 4))",
]

CONVOLUTIONS = [
    "F.conv3d(x.view(1, 1, 2, 4, 5), w.view(8, 1, 2, 2, 2), stride=n)",
    "F.conv3d(x.view(1, 1, 2, 4, 5), w.view(8, 1, 2, 2, 2), padding=n)",
    "F.conv3d(x.view(1, 1, 2, 4, 5), w.view(8, 1, 2, 2, 2), padding=4, dilation=n)",
    "F.conv1d(x[None], w, None, n, 'valid')",
    "F.conv2d(x.view(1, 2, 4, 5), w[:, :4].reshape(4, 2, 2, 2), None, n, 'valid')",
    "F.conv3d(x.view(1, 1, 2, 4, 5), w.view(8, 1, 2, 2, 2), None, n, 'valid')",
    "F.conv_transpose2d(x.view(1, 2, 4, 5).repeat(1, 1, 2, 2), w[:2].reshape(2, 4, 2, 2), None, 1, n)",
    "F.conv_transpose2d(x.view(1, 2, 4, 5), w[:2].reshape(2, 4, 2, 2), None, 4, 0, n)",
    "F.conv_transpose2d(x.view(1, 2, 4, 5), w[:2].reshape(2, 4, 2, 2), None, 1, 0, 0, 1, n)",
    "F.conv_transpose3d(x.view(1, 1, 2, 4, 5), w.view(1, 8, 2, 2, 2), None, n)",
    "F.conv_transpose3d(x.view(1, 1, 2, 4, 5).repeat(1, 1, 4, 2, 2), w.view(1, 8, 2, 2, 2), None, 1, n)",
    "F.conv_transpose3d(x.view(1, 1, 2, 4, 5), w.view(1, 8, 2, 2, 2), None, 4, 0, n)",
    "F.conv_transpose3d(x.view(1, 1, 2, 4, 5), w.view(1, 8, 2, 2, 2), None, 1, 0, 0, 1, n)",
    "torch.ops.aten.convolution(x[None], w, None, [n], [0], [1], False, [0], 1)",
    "torch.ops.aten.convolution(x[None], w, None, [1], [n], [1], False, [0], 1)",
    "torch.ops.aten.convolution(x[None], w, None, [1], [1], [n], False, [0], 1)",
    "torch.ops.aten.convolution(x[None], u, None, [4], [0], [1], True, [n], 1)",
    "torch.ops.aten._convolution(x[None], w, None, [n], [n], [n], False, [0], 1, False, False, False, False)",
]

# What 2 is a number of.
GROUPS = [
    "F.conv1d(x[None], w[:, :4], groups=n)",
    "F.conv2d(x.view(1, 2, 4, 5), w[:, :1].reshape(2, 1, 2, 2), groups=n)",
    "F.conv3d(x.view(1, 2, 1, 4, 5), w[:2].reshape(4, 1, 1, 2, 4), groups=n)",
    "torch.ops.aten.convolution(x[None], w[:, :4], None, [1], [0], [1], False, [0], n)",
    "torch.ops.aten._convolution(x[None], w[:, :4], None, [1], [0], [1], False, [0], n, False, False, False, False)",
    "torch.channel_shuffle(x[None], n)",
    "torch.ops.aten.native_channel_shuffle(x[None, :, :, None], n)",
    "x.tensor_split(n)",
    "F.layer_norm(x[:, :2], (n,))",
    "F.rms_norm(x[:, :2], (n,))",
    "torch.ops.aten.native_layer_norm(x[:, :2], [n], None, None, 1e-5)",
    "torch.ops.aten.native_group_norm(x.view(2, 4, 5), None, None, n, 4, 5, 2, 1e-5)",
    "torch.ops.aten.native_group_norm(x.view(4, 2, 5), None, None, 4, n, 5, 1, 1e-5)",
    "torch.ops.aten.native_group_norm(x[:, :4].reshape(4, 4, 2), None, None, 4, 4, n, 2, 1e-5)",
    "torch.ops.aten.view_copy(x, [n, -1])",
    "torch.ops.aten._reshape_copy(x, [n, -1])",
    "torch.ops.aten._unsafe_view(x, [n, 40 // n])",
    "torch.ops.aten._reshape_alias(x, [n, 20], [20, 1])",
    "torch.ops.aten._reshape_alias_copy(x, [n, 20], [20, 1])",
    "x[:2].sum_to_size(n, 5)",
    "v[None].broadcast_to(n, 5) + 1",
    "torch.ops.aten.split(x, [n, 8 - n])",
    "torch.ops.aten.split_copy(x, n)",
    "torch.ops.aten.split_with_sizes_copy(x, [n, 8 - n])",
    "torch.ops.aten.unsafe_split(x, n)",
    "torch.ops.aten.unsafe_split_with_sizes(x, [n, 8 - n])",
    "torch.linalg.norm(x, n)",
    "torch.linalg.matrix_norm(x, n)",
    "torch.linalg.cond(x[:5] + 9 * torch.eye(5), n)",
    "F.multi_margin_loss(x, torch.arange(8) % 5, p=n)",
]

# Copies of windows.
COPIES = [
    "torch.ops.aten.as_strided_copy(x, [n, 2], [1, 1])",
    "torch.ops.aten.as_strided_copy(x, [2, 2], [n, 1])",
    "torch.ops.aten.as_strided_copy(x, [2, 2], [1, 1], n)",
    "torch.ops.aten.as_strided_scatter(x, x[:1, :2].expand(n, 2), [n, 2], [2, 1])",
    "torch.ops.aten.as_strided_scatter(x, x[:2, :2], [2, 2], [n, 1])",
    "torch.ops.aten.as_strided_scatter(x, x[:2, :2], [2, 2], [2, 1], n)",
    "torch.ops.aten.expand_copy(v, [n, 5])",
    "torch.ops.aten.narrow_copy(x, 0, n, 2)",
    "torch.ops.aten.narrow_copy(x, 0, 1, n)",
    "torch.ops.aten.narrow(x, 0, torch.tensor(1), n) + 1",
    "torch.ops.aten.select_copy(x, 0, n)",
    "torch.ops.aten.slice_copy(x, 0, n)",
    "torch.ops.aten.slice_copy(x, 0, 0, n)",
    "torch.ops.aten.slice_copy(x, 0, 0, 8, n)",
    "torch.ops.aten.select_backward(v, [n, 5], 0, 1)",
    "torch.ops.aten.select_backward(v, [4, 5], 0, n)",
    "torch.ops.aten.slice_backward(x[:2], [8, 5], 0, n, n + 2, 1)",
    "torch.ops.aten._unsafe_masked_index(x, x > 0, [torch.arange(8)[:, None], torch.arange(5)], n)",
]

# New tensors. Of random numbers the sizes are compared.
CREATION = [
    "torch.empty(n).fill_(2)",
    "torch.empty_strided((n, 2), (2, 1)).fill_(2)",
    "v.new_empty_strided((n, 2), (2, 1)).fill_(2)",
    "torch.empty_permuted((n, 2), (1, 0)).fill_(2)",
    "v.new_full((n,), 1.5)",
    "v.new_full((2,), n)",
    "v.new_ones(n)",
    "v.new_zeros(2, n)",
    "torch.eye(3, n)",
    "torch.ops.aten.eye.m(n, 2)",
    "torch.rand(n) * 0",
    "torch.randn(n, 2) * 0",
    "torch.normal(0.0, 1.0, (n,)) * 0",
    "torch.randint(0, 5, (n,)) * 0",
    "torch.randint(n, (3,)) * 0",
    "torch.randint(n, 1000, (3,)) * 0",
    "torch.randint_like(v, n) * 0",
    "torch.randint_like(v, n, 1000) * 0",
    "torch.randperm(n) * 0",
    "torch.multinomial(v.abs() + 1, n) * 0",
    "torch.multinomial(v.abs() + 1, n, replacement=True) * 0",
    "torch.range(0, n)",
    "torch.range(n, 8)",
    "torch.range(0, 8, n)",
    "torch.arange(n, 9, 2)",
    "torch.logspace(0, n, 3)",
    "torch.logspace(n, 0, 3)",
    "torch.logspace(0, 1, n)",
    "torch.linspace(torch.tensor(0.5), n, 3)",
    "torch.linspace(n, torch.tensor(0.5), 3)",
    "torch.bincount(v.abs().long(), minlength=n)",
    "torch.nonzero_static(x, size=n)",
    "v.repeat_interleave(torch.arange(5), output_size=n)",
    "torch.repeat_interleave(torch.arange(3), output_size=n)",
]

# Numbers that operators compute with.
NUMBERS = [
    *(f"torch.ops.aten.{name}.Scalar(v, n)" for name in ("add", "sub", "mul", "div", "copysign", "floor_divide", "fmod")),
    *(f"torch.ops.aten.{name}.Scalar(v, n)" for name in ("eq", "ne", "ge", "le", "gt", "lt", "remainder", "rsub")),
    *(f"torch.ops.aten.{name}.Scalar(v.long(), 3, n)" for name in ("add", "sub", "rsub")),
    *(f"torch.ops.aten.bitwise_{name}.Scalar(v.long(), n)" for name in ("and", "or", "xor")),
    *(f"torch.ops.aten.bitwise_{name}.Scalar_Tensor(n, v.long())" for name in ("and", "or", "xor")),
    *(f"torch.ops.aten.bitwise_{side}_shift.Tensor_Scalar(v.long(), n)" for side in ("left", "right")),
    *(f"torch.ops.aten.bitwise_{side}_shift.Scalar_Tensor(n, v.abs().long())" for side in ("left", "right")),
    "torch.ops.aten.div.Scalar_mode(v.long(), n, rounding_mode='floor')",
    "torch.clamp_min(v, n)",
    "torch.clamp_max(v.long(), n)",
    "torch.float_power(v.abs(), n)",
    "torch.float_power(n, v)",
    "torch.pow(n, v)",
    "torch.pow(n, v.abs().long())",
    "torch.remainder(n, v.long().abs() + 1)",
    "torch.lerp(v, v + 1, n)",
    "torch.xlogy(n, v.abs() + 1)",
    "torch.xlogy(v, n)",
    "torch.special.xlog1py(n, v.abs())",
    "torch.special.xlog1py(v, n)",
    "torch.special.zeta(v.abs() + 2, n)",
    "torch.trapezoid(v, dx=n)",
    "torch.cumulative_trapezoid(v, dx=n)",
    "torch.gradient(v, spacing=n)",
    "F.hardtanh(v, n, 9)",
    "torch.isin(n, v.long())",
    "torch.isin(v.long(), n)",
    "torch.fill(v, n)",
    "torch.fill(v.int(), n)",
    "torch.scatter(v, 0, torch.arange(2), n, reduce='add')",
    "torch.scatter(v.long(), 0, torch.arange(2), n, reduce='multiply')",
    "torch.searchsorted(torch.arange(5), n)",
    "torch.bucketize(n, torch.arange(5))",
    "torch.ops.aten.threshold_backward(v, v, n)",
    "torch.where(v > 0, n, 2)",
    "torch.where(v > 0, 2, n)",
    "torch.where(v > 0, n, v)",
    "F.rrelu(v, n, 3)",
    "F.rrelu(v, 0, n)",
    "F.multi_margin_loss(x, torch.arange(8) % 5, margin=n)",
    "torch.addmm(x[:2, :2], w[0].T, w[0], alpha=n)",
    "torch.addmm(x[:2, :2].long(), w[0].T.long(), w[0].long(), beta=n, alpha=2)",
    "torch.baddbmm(x[0, 0].expand(4, 8, 8), w, w.transpose(1, 2), beta=n)",
    "torch.addbmm(x[:8, :1].expand(8, 8), w, w.transpose(1, 2), beta=n)",
    "torch.addbmm(x[:8, :1].expand(8, 8), w, w.transpose(1, 2), alpha=n)",
    "torch.addmv(v, x.t(), x[:, 0], beta=n)",
    "torch.addmv(v, x.t(), x[:, 0], alpha=n)",
    "torch.addr(x[:5], v, v, beta=n)",
    "torch.addr(x[:5], v, v, alpha=n)",
    "torch.std(x, 0, correction=n)",
    "torch.std_mean(x, 0, correction=n)",
    "torch.var_mean(x, 0, correction=n)",
    "F.embedding(torch.arange(3), x, padding_idx=n)",
    "torch.ops.aten.nll_loss(x, torch.arange(8) % 5, None, 1, n)",
    "torch.ops.aten.nll_loss_forward(x, torch.arange(8) % 5, None, 1, n)",
    "torch.ops.aten.nll_loss2d(x.view(1, 2, 4, 5), torch.arange(20).view(1, 4, 5) % 2, None, 1, n)",
    "torch.ops.aten.nll_loss2d_forward(x.view(1, 2, 4, 5), torch.arange(20).view(1, 4, 5) % 2, None, 1, n)",
]

PADDING = [
    "torch.ops.aten.constant_pad_nd(v, [n, 1], 2)",
    "torch.ops.aten._pad_circular(x[None], [n, 1])",
    *(f"torch.ops.aten.{kind}_pad1d(x[None], [1, n])" for kind in ("reflection", "replication")),
    *(f"torch.ops.aten.{kind}_pad2d(x[None], [1, 1, n, 0])" for kind in ("reflection", "replication")),
    *(f"torch.ops.aten.{kind}_pad3d(x[None, None], [1, n, 0, 1, 0, 0])" for kind in ("reflection", "replication")),
]

# Strides of new memory, and positions whose products leave 64 bits before PyTorch's do.
SMALL = [
    "torch.empty_strided((2, 2), (n, 1)).fill_(2)",
    "F.conv2d(x.view(1, 2, 4, 5), w[:, :4].reshape(4, 2, 2, 2), None, 1, 'same', n)",
    "F.conv3d(x.view(1, 1, 2, 4, 5), w.view(8, 1, 2, 2, 2), None, 1, 'same', n)",
    "torch.special.zeta(n, v.abs() + 1)",
]

# Orders of polynomials and of norms.
ORDERS = [
    *(
        f"torch.special.{name}({arguments})"
        for name in (
            "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
            "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
            "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
        )
        for arguments in ("v, n", "n, v.abs().round()")
    ),
    "torch.ops.aten.norm.Scalar(x, n)",
    "torch.ops.aten.norm.ScalarOpt_dim(x, n, [0])",
    "torch.ops.aten.norm.ScalarOpt_dtype(x, n, dtype=torch.float64)",
    "torch.ops.aten.norm.ScalarOpt_dim_dtype(x, n, [0], False, dtype=torch.float64)",
    "torch.linalg.norm(v, n)",
]  # fmt: skip


def fill(t):
    t.bind(x=t.rand(8, 5), v=t.rand(5), w=t.rand(4, 8, 2), u=t.rand(8, 4, 2))
    for text in POOLING + UPSAMPLING + CONVOLUTIONS + COPIES + CREATION + NUMBERS + PADDING:
        t.integer(text, 3, VALUES)
    for text in GROUPS:
        t.integer(text, 2, VALUES)
    for text in SMALL + ORDERS:
        t.integer(text, 3, FEW)


FAMILIES = {"arguments": (["f32"], fill)}
