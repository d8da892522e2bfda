"""Gradients: the operators that programs which train call beside their forward pass."""


def activations(t):
    a = "torch.ops.aten."
    t.bind(g=t.rand(7, 12), x=t.rand(7, 12, low=-5, high=5), s=t.special(), w=t.rand(7, 12), u=t.rand(7, 12, low=0.01, high=0.99))
    for name in ("silu_backward", "mish_backward", "hardswish_backward"):
        # Of NaN, PyTorch's last elements differ from others.
        t(f"{a}{name}(g, x)", f"{a}{name}(torch.ones_like(s[1:]), s[1:])")
    if t.type != "f64":
        # Of that type PyTorch's kernel and its decomposition differ.
        t(f"{a}hardsigmoid_backward(g, x)", f"{a}hardsigmoid_backward(torch.ones_like(s), s)")
    t(
        f"{a}gelu_backward(g, x), {a}gelu_backward(g, x, approximate='tanh')",
        f"{a}hardtanh_backward(g, x, -1, 1), {a}hardtanh_backward(g, x, 0.0, 6.0), {a}hardtanh_backward(torch.ones_like(s[1:]), s[1:], -1.0, 1.0)",
        f"{a}leaky_relu_backward(g, x, 0.2, False), {a}leaky_relu_backward(g, x, 0.2, True)",
        f"{a}softplus_backward(g, x, 1, 20), {a}softplus_backward(g, x, 2.0, 3.0)",
        f"y, b = {a}log_sigmoid_forward(x); {a}log_sigmoid_backward(g, x, b)",
        f"{a}softshrink_backward(g, x, 0.5), {a}hardshrink_backward(g, x, 1.5)",
        f"{a}logit_backward(g, u, None), {a}logit_backward(g, u, 0.2), {a}logit_backward(g, x, None)",
        f"{a}glu_backward(g[:, :6], x, 1), {a}glu_backward(x[:, :6].mT, x.mT, -2)",
        f"{a}_prelu_kernel_backward(g, x, w)",
        f"{a}rrelu_with_noise_backward(g, x, w, 0.1, 0.3, False, False), {a}rrelu_with_noise_backward(g, x, w, 0.1, 0.3, True, False)",
        f"{a}elu_backward(g, 1, 1, 1, False, x), {a}elu_backward(g, 1.5, 1.2, 0.7, False, x), {a}elu_backward(g, 1.5, 1.2, 0.7, True, x)",
    )


def losses(t):
    a = "torch.ops.aten."
    t.bind(
        g=t.rand(6, 5), one=t.rand(), x=t.rand(6, 5), y=t.rand(6, 5), p=t.rand(6, 5, low=0.05, high=0.95), q=t.rand(6, 5, low=0, high=1), w=t.rand(6, 5, low=0, high=1)
    )
    for k, g in ((0, "g"), (1, "one"), (2, "one")):
        t(
            f"{a}mse_loss_backward({g}, x, y, {k}), {a}soft_margin_loss_backward({g}, x, y.sign(), {k})",
            f"{a}smooth_l1_loss_backward({g}, x, y, {k}, 1.0), {a}smooth_l1_loss_backward({g}, x, y, {k}, 0.3), {a}huber_loss_backward({g}, x, y, {k}, 0.7)",
            f"{a}binary_cross_entropy_backward({g}, p, q, None, {k}), {a}binary_cross_entropy_backward({g}, p, q, w, {k})",
        )
        if t.type != "f64":
            # Of that type PyTorch's kernel and its decomposition differ in the least spread.
            t(f"{a}binary_cross_entropy_backward({g}, p.round(), q, None, {k})")
    t.bind(rows=t.rand(6), v=t.rand(5, low=0, high=1), c=t.ints(0, 5, 6), total=t.rand(low=1, high=3), i=t.rand(2, 5, 3, 2), d=t.ints(0, 5, 2, 3, 2), pixels=t.rand(2, 3, 2))
    for k, g, h in ((0, "rows", "pixels"), (1, "one", "one"), (2, "one", "one")):
        t(
            f"{a}nll_loss_backward({g}, x, c, None, {k}, -100, total), {a}nll_loss_backward({g}, x, c, v, {k}, 3, total)",
            f"{a}nll_loss2d_backward({h}, i, d, None, {k}, -100, total), {a}nll_loss2d_backward({h}, i, d, v, {k}, 2, total)",
        )


def layers(t):
    a = "torch.ops.aten."
    t.bind(x=t.rand(3, 6, 4, 5), g=t.rand(3, 6, 4, 5), w=t.rand(6), b=t.rand(6), last=t.rand(4, 5), rm=t.rand(6), rv=t.rand(6, low=0.5, high=2))
    every = "[True, True, True]"
    t(
        f"y, m, r = torch.native_layer_norm(x, [4, 5], last, last, 1e-5); {a}native_layer_norm_backward(g, x, [4, 5], m, r, last, last, {every})",
        f"y, m, r = torch.native_layer_norm(x, [5], None, None, 1e-5); {a}native_layer_norm_backward(g, x, [5], m, r, None, None, [True, False, False])",
        f"y, m, r = torch.native_group_norm(x, w, b, 3, 6, 20, 2, 1e-5); {a}native_group_norm_backward(g, x, m, r, w, 3, 6, 20, 2, {every})",
        f"y, m, r = torch.native_group_norm(x, None, None, 3, 6, 20, 3, 1e-5); {a}native_group_norm_backward(g, x, m, r, None, 3, 6, 20, 3, [True, False, False])",
        f"y, m, r = torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5); {a}native_batch_norm_backward(g, x, w, None, None, m, r, True, 1e-5, {every})",
        f"{a}native_batch_norm_backward(g, x, w, rm, rv, None, None, False, 1e-5, {every})",
        f"{a}native_batch_norm_backward(g, x, None, rm, rv, None, None, False, 1e-3, [True, False, False])",
    )
    t.bind(i=t.ints(0, 9, 4, 3), e=t.rand(4, 3, 5))
    for padding, scaled in ((-1, False), (2, False), (-1, True), (3, True)):
        t(f"{a}embedding_dense_backward(e, i, 9, {padding}, {scaled})")
    t(
        f"{a}unfold_backward(x.unfold(3, 3, 1), [3, 6, 4, 5], 3, 3, 1), {a}unfold_backward(x.unfold(1, 2, 3), [3, 6, 4, 5], 1, 2, 3)",
        f"{a}diagonal_backward(x.diagonal(1, 2, 3), [3, 6, 4, 5], 1, 2, 3), {a}diagonal_backward(x.diagonal(-2, 0, 1), [3, 6, 4, 5], -2, 0, 1)",
        f"{a}diagonal_backward(x.diagonal(-1, 3, 1), [3, 6, 4, 5], -1, 3, 1)",
    )
    t.bind(q=t.rand(2, 2, 5, 4), k=t.rand(2, 2, 7, 4), v=t.rand(2, 2, 7, 4), go=t.rand(2, 2, 5, 4), bias=t.rand(5, 7))
    flash = f"{a}_scaled_dot_product_flash_attention_for_cpu"
    if t.type != "f32":
        # What PyTorch decomposes the forward pass to (`f64`) does not keep what the gradient is computed from, and in `bf16`
        # its kernel rounds what is between.
        return
    for more in ("", ", attn_mask=bias", ", scale=0.3"):
        t(f"y, n = {flash}(q, k, v, 0.0, False{more}); {flash}_backward(go, q, k, v, y, n, 0.0, False{more})")
    t(f"y, n = {flash}(k, k, v, 0.0, True); {flash}_backward(v, k, k, v, y, n, 0.0, True)")


def convolutions(t):
    every = "[True, True, True]"

    def back(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
        where = f"{stride}, {padding}, {dilation}, {transposed}, {output_padding}, {groups}"
        return f"y = torch.convolution({x}, {w}, None, {where}); torch.ops.aten.convolution_backward((torch.arange(y.numel()).view(y.shape) % 7 / 8 - 0.5).to(y.dtype), {x}, {w}, {bias}, {where}, {every})"

    t.bind(x=t.rand(2, 4, 9, 8), a=t.rand(6, 4, 3, 2), b=t.rand(6, 2, 3, 3), d=t.rand(4, 1, 3, 3), p=t.rand(4, 3, 3, 2), s=t.rand(2, 4, 11), l=t.rand(6, 4, 5))
    t(
        back("x", "a", [6], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        back("x", "a", [6], [2, 3], [1, 0], [1, 2], False, [0, 0], 1),
        back("x", "b", [6], [3, 2], [2, 1], [2, 1], False, [0, 0], 2),
        back("x", "d", [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 4),
        back("s", "l", [6], [4], [2], [1], False, [0], 1),
        back("x", "a[..., :1, :1]", [6], [2, 2], [0, 0], [1, 1], False, [0, 0], 1),
        back("x", "p", [3], [1, 1], [0, 0], [1, 1], True, [0, 0], 1),
        back("x", "p", [3], [2, 3], [1, 0], [1, 2], True, [1, 2], 1),
        back("x", "p", [6], [2, 2], [1, 1], [2, 1], True, [1, 1], 2),
        back("s", "l[:4]", [4], [1], [2], [3], True, [2], 1),
        back("x[:1]", "d", [4], [1, 2], [1, 1], [1, 1], False, [0, 0], 4),
    )


def resampling(t):
    a = "torch.ops.aten."
    t.bind(x=t.rand(2, 3, 9, 7), g=t.rand(2, 3, 5, 4), l=t.rand(2, 3, 11), v=t.rand(1, 2, 4, 5, 3))
    t(
        f"{a}avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 1], True, True, None)",
        f"{a}avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 1], True, False, None)",
        f"{a}avg_pool2d_backward(g[:, :, :4, :3], x, [2, 2], [], [0, 0], False, True, None)",
        f"{a}avg_pool2d_backward(g[:, :, :, :3], x, [3, 3], [2, 2], [1, 0], False, False, None)",
        f"{a}avg_pool2d_backward(g[:, :, :, :3], x, [3, 3], [2, 2], [1, 0], False, True, 5)",
        f"{a}avg_pool3d_backward(v[:, :, :2, :2, :1], v, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)",
        f"{a}_adaptive_avg_pool2d_backward(g, x), {a}_adaptive_avg_pool2d_backward(g[:, :, :3, :1], x)",
        f"{a}_adaptive_avg_pool2d_backward(x, g), {a}_adaptive_avg_pool3d_backward(v[:, :, :3, :2], v)",
        f"{a}reflection_pad1d_backward(l[..., :9], l[..., :5], [3, 1]), {a}replication_pad1d_backward(l[..., :9], l[..., :5], [3, 1])",
        f"{a}reflection_pad2d_backward(x, x[:, :, :5, :4], [1, 2, 0, 4]), {a}replication_pad2d_backward(x, x[:, :, :5, :4], [1, 2, 0, 4])",
        f"{a}replication_pad3d_backward(v, v[:, :, :2, :2, :2], [1, 0, 2, 1, 1, 1])",
    )
    for kind in ("upsample_nearest", "_upsample_nearest_exact"):
        t(
            f"{a}{kind}1d_backward(l, [11], [2, 3, 5], None), {a}{kind}1d_backward(l[..., :4], [4], [2, 3, 9], None)",
            f"{a}{kind}2d_backward(x, [9, 7], [2, 3, 5, 4], None, None), {a}{kind}2d_backward(x, [9, 7], [2, 3, 12, 3], 0.8, 2.5)",
            f"{a}{kind}3d_backward(v, [4, 5, 3], [1, 2, 2, 3, 6], None, None, None)",
        )
    for align in (False, True):
        t(
            f"{a}upsample_linear1d_backward(l, [11], [2, 3, 5], {align}, None), {a}upsample_trilinear3d_backward(v, [4, 5, 3], [1, 2, 2, 3, 6], {align})",
            f"{a}upsample_bilinear2d_backward(x, [9, 7], [2, 3, 5, 4], {align}), {a}upsample_bilinear2d_backward(x, [9, 7], [2, 3, 12, 9], {align}, 0.8, 0.7)",
            f"{a}upsample_bicubic2d_backward(x, [9, 7], [2, 3, 5, 4], {align}), {a}upsample_bicubic2d_backward(g, [5, 4], [2, 3, 9, 7], {align})",
        )


def gradients(t):
    for part in (activations, losses, layers, convolutions, resampling):
        part(t)


FAMILIES = {"gradients": (("f32", "f64", "bf16"), gradients)}
