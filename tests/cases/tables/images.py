"""Windows over images: pads, pooling, convolution, interpolation, sampling."""

import math

import torch

FEW = ("f32", "f64", "bf16", "f16")
POOLED = ("f32", "f64", "bf16", "f16", "i64")


def pads(t):
    t.bind(x=t.rand(2, 3, 5, 7), line=t.rand(1, 2, 9), cube=t.rand(1, 2, 3, 4, 5), s=t.rand(3), z=t.rand(2, 0, 5))
    for mode in ("constant", "reflect", "replicate", "circular"):
        t(
            f"F.pad(x, (1, 2), mode='{mode}'), F.pad(x, (0, 1, 2, 3), mode='{mode}')",
            f"F.pad(x, (2, 0, 0, 1), mode='{mode}')",
            f"F.pad(line, (3, 2), mode='{mode}')",
            f"F.pad(cube, (1, 1, 2, 0, 1, 2), mode='{mode}')",
            f"F.pad(x[..., ::2].transpose(2, 3), (1, 1, 1, 2), mode='{mode}')",
            f"F.pad(line[0], (1, 8), mode='{mode}')",
            f"F.pad(x, (-1, 1, 1, -2), mode='{mode}')",
            f"F.pad(x, (0, 0, -1, -1), mode='{mode}')",
        )
    t(
        "F.pad(x, (1, 0, 0, 2), value=2.5), F.pad(s, (2, 1), value=-1), F.pad(x, (-2, -2, -1, 1)), F.pad(x, (0, 0, 0, 0, 1, 1, 2, 0))",
        "F.pad(z, (1, 1, 1, 1)), F.pad(s, (0, 0)), F.pad(s, (-1, -2)), F.pad(s, (-3, 4), value=float('-inf'))",
        "torch.constant_pad_nd(x, (1, 1), 3)",
    )


def pooling(t):
    t.bind(
        a=t.rand(2, 3, 13),
        b=t.rand(2, 3, 9, 11),
        c=t.rand(1, 2, 5, 6, 7),
        one=t.rand(1, 1, 1, 1),
        e=t.special(),
        u=t.rand(3, 7, 5),
        low=torch.full((1, 2, 5, 7), -math.inf if t.is_float else 0, dtype=t.dtype),
        odd=t.special()[torch.arange(2 * 9 * 11) * 7 % t.special().numel()].view(1, 2, 9, 11),
    )
    # Windows with nothing but what is lowest, and with several NaN.
    for x in ("low", "low * math.nan", "odd"):
        t(
            f"F.max_pool1d(({x})[0], 3, 1, 1, return_indices=True), F.max_pool1d(({x})[0], 3, 2, 1, 2, return_indices=True)",
            f"F.max_pool2d({x}, 3, 1, 1, return_indices=True), F.max_pool2d({x}, 3, 2, 1, 2, True, return_indices=True)",
            f"F.max_pool2d({x}, (2, 3), 2, (1, 0), 1, True, return_indices=True)",
            f"F.max_pool3d({x}, 2, 1, 1, return_indices=True), F.max_pool3d({x}, (1, 3, 3), 2, (0, 1, 1), (1, 2, 1), True, return_indices=True)",
            f"F.adaptive_max_pool1d(({x})[0], 3, True), F.adaptive_max_pool2d({x}, (2, 4), True), F.adaptive_max_pool3d({x}, (1, 3, 2), True)",
        )
    t("v, i = F.max_pool2d(low, 3, 2, 1, return_indices=True); torch.ops.aten.max_pool2d_with_indices_backward(v * 0 + 1, low, [3, 3], [2, 2], [1, 1], [1, 1], False, i)")
    for kind in ("max", "avg"):
        ceil = ", ceil_mode=True"
        t(
            f"F.{kind}_pool1d(a, 3), F.{kind}_pool1d(a, 3, 2, 1), F.{kind}_pool1d(a, 4, 3, 2{ceil}), F.{kind}_pool1d(a[0], 2)",
            f"F.{kind}_pool2d(b, 3), F.{kind}_pool2d(b, (2, 3), (2, 1), (1, 0))",
            f"F.{kind}_pool2d(b, 4, 3, 2{ceil}), F.{kind}_pool2d(b, 2, 2, 1{ceil})",
            f"F.{kind}_pool2d(b.transpose(2, 3), 2), F.{kind}_pool2d(b[0], 3, 2), F.{kind}_pool2d(one, 1), F.{kind}_pool2d(b[..., ::2], 3, 1, 1)",
            f"F.{kind}_pool3d(c, 2), F.{kind}_pool3d(c, (1, 3, 2), 2, (0, 1, 1){ceil})",
            f"F.{kind}_pool2d(u, (3, 1))",
            f"F.{kind}_pool2d(b.to(memory_format=torch.channels_last), 3, 2, 1)",
        )
        for size in ("1", "4", "7", "15"):
            t(
                f"F.adaptive_{kind}_pool1d(a, {size})",
                f"F.adaptive_{kind}_pool2d(b, {size})",
                f"F.adaptive_{kind}_pool3d(c, {size})",
            )
        t(
            f"F.adaptive_{kind}_pool2d(b, (3, None)), F.adaptive_{kind}_pool2d(b, (2, 5)), F.adaptive_{kind}_pool2d(b[0], (1, 11))"
        )
    t(
        "F.max_pool1d(a, 3, dilation=2, return_indices=True)",
        "F.max_pool2d(b, 3, 2, 1, 2, return_indices=True)",
        "F.max_pool2d(b, 3, 2, 1, 1, True, return_indices=True)",
        "F.max_pool3d(c, 2, 1, 1, 2, return_indices=True)",
        "F.adaptive_max_pool2d(b, 3, return_indices=True)",
        "F.adaptive_max_pool1d(a, 4, True)",
        "F.adaptive_max_pool3d(c, (2, 3, 2), True)",
        "F.max_pool2d(b * 0, 3, 2, return_indices=True)",
        "F.max_pool1d(e[None, None], 5, 2, 1, return_indices=True)",
        "F.max_pool1d(e[None, None], 3)",
        "F.avg_pool2d(b, 3, 2, 1, count_include_pad=False), F.avg_pool2d(b, 3, 2, 1, True, False), F.avg_pool2d(b, 2, divisor_override=3)",
        "F.avg_pool1d(a, 3, 2, 1, True, False), F.avg_pool3d(c, 2, 2, 1, True, False), F.avg_pool3d(c, 2, divisor_override=5)",
        "F.lp_pool1d(a, 2, 3), F.lp_pool2d(b, 2, 3, 2), F.lp_pool2d(b, 1, 2, ceil_mode=True), F.lp_pool3d(c, 2, 2)",
        "v, i = F.max_pool2d(b, 2, return_indices=True); F.max_unpool2d(v, i, 2)",
        "v, i = F.max_pool1d(a, 3, return_indices=True); F.max_unpool1d(v, i, 3, output_size=(13,))",
        "v, i = F.max_pool3d(c, 2, return_indices=True); F.max_unpool3d(v, i, 2)",
        "F.unfold(b, 3), F.unfold(b, (2, 3), 2, (1, 0), (1, 2)), F.unfold(b[0], 2)",
        "F.fold(F.unfold(b, 3, padding=1), (9, 11), 3, padding=1)",
        "F.fold(F.unfold(b, 2, stride=2, dilation=2), (9, 11), 2, stride=2, dilation=2)",
        "F.local_response_norm(b, 3), F.local_response_norm(a, 2)",
    )


def convolution(t):
    r = lambda *sizes: t.rand(*sizes, low=-1, high=1)
    t.bind(
        a=r(2, 6, 13),
        b=r(2, 6, 9, 11),
        c=r(1, 4, 5, 6, 7),
        wa=r(5, 6, 3),
        wb=r(5, 6, 3, 3),
        wc=r(3, 4, 2, 3, 2),
        ga=r(6, 2, 3),
        gb=r(9, 2, 3, 2),
        d=r(6, 1, 3, 3),
        d2=r(12, 1, 2, 3),
        gc=r(4, 2, 2, 2, 2),
        bias=r(5),
        p=r(7, 6, 1, 1),
        one=r(1, 1, 1, 1),
        w1=r(1, 1, 1, 1),
        odd=r(1, 3, 17, 37),
        w7=r(19, 3, 7, 7),
        ta=r(6, 5, 3),
        tb=r(6, 5, 3, 3),
        tg=r(6, 2, 3, 2),
        tc=r(4, 3, 2, 3, 2),
        k=r(3, 6, 1, 3),
        big=r(1, 17, 8, 8),
        wbig=r(33, 17, 3, 3),
        bias33=r(33),
        z=r(0, 6, 9, 11),
        bias7=r(7),
        tall=r(1, 6, 9, 1),
    )
    t(
        "F.conv1d(a, wa), F.conv1d(a, wa, bias, 2, 1), F.conv1d(a, wa, None, 1, 2, 2), F.conv1d(a, ga, None, 1, 1, 1, 3), F.conv1d(a[0], wa)",
        "F.conv1d(a, wa, padding='same'), F.conv1d(a, wa[..., :2], padding='same'), F.conv1d(a, wa[..., :2], padding='same', dilation=3), F.conv1d(a, wa, padding='valid')",
        "F.conv1d(a[..., ::2], wa), F.conv1d(a.flip(2), wa[..., 1:].contiguous(), bias)",
        "F.conv2d(b, wb), F.conv2d(b, wb, bias, 2, 1)",
        "F.conv2d(b, wb, bias, (2, 1), (0, 2), (1, 2)), F.conv2d(b, wb, padding='same', dilation=(2, 1))",
        "F.conv2d(b, gb, None, 1, 0, 1, 3), F.conv2d(b, gb, None, (1, 2), (2, 1), (2, 1), 3)",
        "F.conv2d(b, d, None, 1, 1, 1, 6), F.conv2d(b, d2, None, 2, 1, 1, 6), F.conv2d(b, d, None, 1, 2, 2, 6)",
        "F.conv2d(b, p), F.conv2d(b, p, bias7, 2), F.conv2d(b, p, bias7, 1, 1)",
        "F.conv2d(one, w1), F.conv2d(one, w1, None, 1, 1), F.conv2d(one, w1, None, 3, 2)",
        "F.conv2d(odd, w7, None, 2, 3), F.conv2d(odd, w7, None, 4, 2)",
        "F.conv2d(b.to(memory_format=torch.channels_last), wb, bias, 1, 1), F.conv2d(b.transpose(2, 3), wb, bias)",
        "F.conv2d(b[:, :, ::2, 1:], wb), F.conv2d(b[0], wb)",
        "F.conv2d(b, k, padding=(0, 1)), F.conv2d(b, k, padding='same'), F.conv2d(tall, k, padding='same')",
        "F.conv2d(big, wbig, bias33, 1, 1), F.conv2d(big, wbig, bias33, 2, 1), F.conv2d(big, wbig, bias33, 1, 2, 2)",
        "F.conv2d(z, wb), F.conv2d(z, wb, bias, 2)",
        "F.conv2d(F.pad(b, (1, 0, 0, 2)), wb, bias), F.conv2d(F.pad(b, (1, 0, 0, 2), mode='reflect'), wb)",
        "F.relu(F.conv2d(b, wb, bias)) + 1, F.conv2d(b, wb, bias).sum((2, 3)), F.conv2d(b * 2, wb).transpose(1, 3)",
        "F.conv3d(c, wc), F.conv3d(c, wc, None, 2, 1), F.conv3d(c, wc, None, 1, (1, 0, 2), (1, 2, 1))",
        "F.conv3d(c, gc, None, 1, 1, 1, 2), F.conv3d(c, wc, padding='same'), F.conv3d(c[0], wc)",
        "F.conv_transpose1d(a, ta), F.conv_transpose1d(a, ta, bias, 2, 1, 1), F.conv_transpose1d(a, ta, None, 3, 0, 2, 1, 2)",
        "F.conv_transpose2d(b, tb), F.conv_transpose2d(b, tb, bias, 2, 1, 1)",
        "F.conv_transpose2d(b, tb, None, (2, 3), (1, 0), (1, 2), 1, (1, 2)), F.conv_transpose2d(b, tg, None, 2, 0, 0, 3), F.conv_transpose2d(b[0], tb)",
        "F.conv_transpose2d(b, d, None, 2, 1, 1, 6), F.conv_transpose2d(one, w1, None, 2, 0, 1)",
        "F.conv_transpose3d(c, tc), F.conv_transpose3d(c, tc, None, 2, 1, 1), F.conv_transpose3d(c, gc, None, 2, 0, 0, 2)",
        "F.conv_tbc(a.permute(2, 0, 1).contiguous(), wa.permute(2, 1, 0).contiguous(), bias, 1)",
        "torch.convolution(b, wb, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)",
    )


def interpolation(t):
    t.bind(
        a=t.rand(2, 3, 7),
        b=t.rand(1, 2, 5, 7),
        c=t.rand(1, 2, 3, 4, 5),
        one=t.rand(1, 2, 1, 1),
        g=t.rand(1, 4, 3, 2, low=-1.4, high=1.4),
        h=t.rand(1, 2, 3, 4, 3, low=-1.4, high=1.4),
        th=t.rand(1, 2, 3),
    )
    spatial = {
        "nearest": "abc",
        "nearest-exact": "abc",
        "linear": "a",
        "bilinear": "b",
        "bicubic": "b",
        "trilinear": "c",
        "area": "abc",
    }
    for mode, names in spatial.items():
        for x in names:
            rank = {"a": 1, "b": 2, "c": 3}[x]
            corners = (
                [", align_corners=False", ", align_corners=True"]
                if mode in ("linear", "bilinear", "bicubic", "trilinear")
                else [""]
            )
            for corner in corners:
                t(
                    f"F.interpolate({x}, {[4, 9, 3][:rank]}, mode='{mode}'{corner}), F.interpolate({x}, scale_factor=2, mode='{mode}'{corner})",
                    f"F.interpolate({x}, scale_factor={[1.6, 0.7, 2.3][:rank]}, mode='{mode}'{corner})",
                    f"F.interpolate({x}, scale_factor=1.7, mode='{mode}', recompute_scale_factor=True{corner})",
                    f"F.interpolate({x}, {[1, 1, 1][:rank]}, mode='{mode}'{corner})",
                )
    for mode in ("nearest", "bilinear", "bicubic"):
        t(f"F.interpolate(one, (3, 4), mode='{mode}')", f"F.interpolate(b.transpose(2, 3), (4, 4), mode='{mode}')")
    for mode in ("bilinear", "bicubic"):
        for corner in (True, False):
            t(
                f"F.interpolate(b, (3, 4), mode='{mode}', align_corners={corner}, antialias=True), F.interpolate(b, (11, 2), mode='{mode}', align_corners={corner}, antialias=True)"
            )
    # Of bf16, PyTorch computes the weights of `bicubic` with the type's eight digits.
    for mode in ("bilinear", "nearest", "bicubic") if t.type != "bf16" else ("bilinear", "nearest"):
        for pad in ("zeros", "border", "reflection"):
            for corner in (True, False):
                t(f"F.grid_sample(b, g, '{mode}', '{pad}', {corner})")
                if mode != "bicubic":
                    t(f"F.grid_sample(c, h, '{mode}', '{pad}', {corner})")
    for corner in (True, False):
        t(
            f"F.affine_grid(th, (1, 2, 4, 5), align_corners={corner}), F.grid_sample(b, F.affine_grid(th, (1, 2, 3, 1), align_corners={corner}), align_corners={corner})"
        )


FAMILIES = {
    "pads": (("f32", "f64", "bf16", "i64", "bool"), pads),
    "pooling": (POOLED, pooling),
    "convolution": (("f32", "f64", "bf16", "f16", "i64"), convolution),
    "interpolation": (("f32", "f64", "bf16", "u8"), interpolation),
}
