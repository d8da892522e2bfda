"""What quantised programs are made of: the operators of PT2E and of torchao. The latter needs torchao besides PyTorch."""

import torch
import torch.ao.quantization.fx._decomposed
import torchao.quantization.quant_primitives

Q = "torch.ops.quantized_decomposed"
AO = "torch.ops.torchao"
# Type, least and largest number.
KEPT = (("int8", -128, 127), ("uint8", 0, 255), ("int8", -8, 7), ("uint8", 0, 15), ("int16", -32768, 32767))


def tensors(t):
    q, p = f"{Q}.quantize_per_tensor", f"{Q}.dequantize_per_tensor"
    for name, low, high in (*KEPT, ("int32", -70000, 70000)):
        limits = f"{low}, {high}, torch.{name}"
        t(
            f"{q}(x, 0.0371, 3, {limits}), {q}(e, 0.25, 0, {limits}), {q}(z, 0.5, 1, {limits}), {q}(s, 0.1, -2, {limits})",
            f"{q}.tensor(x, scale, zero, {limits}), {q}.tensor(x, scale.double(), zero.int(), {limits})",
            f"{q}.tensor2(x, scale, zero, torch.tensor({low}), torch.tensor({high}), torch.{name})",
        )
        if name != "int32":
            t(
                f"{p}({name}, 0.0371, 3, {limits}), {p}({name}, 0.1, 0, {limits}, out_dtype=torch.bfloat16), {p}({name}[:, :0], 0.1, 0, {limits})",
                f"{p}.tensor({name}, scale, zero, {limits}), {p}.tensor({name}, scale.double(), zero.int(), {limits}, out_dtype=torch.float16)",
                f"{p}.tensor2({name}, scale, zero, torch.tensor({low}), torch.tensor({high}), torch.{name})",
            )
    for name, low, high in KEPT:
        for kind in ("choose_qparams", "choose_qparams_symmetric"):
            t(f"{Q}.{kind}.tensor(x, {low}, {high}, 1.1920928955078125e-07, torch.{name})")
            t(f"{Q}.{kind}.tensor(x * 0 + 2, {low}, {high}, 0.25, torch.{name})")
            t(f"{Q}.{kind}.tensor(-x.abs() - 1, {low}, {high}, 1e-9, torch.{name})")
    t(f"{Q}.choose_qparams.tensor(x * 0, -128, 127, 1e-5, torch.int8), {Q}.choose_qparams.tensor(s, 0, 255, 1e-5, torch.uint8)")
    t(f"{Q}.convert_element_type.no_fuse(x, torch.float32), {Q}.convert_element_type.no_fuse(x, torch.bfloat16)")


def channels(t):
    for axis, scales, zeros in ((0, "three", "threes"), (1, "four", "fours"), (2, "five", "fives"), (-1, "five", "fives")):
        for name, low, high in KEPT:
            limits = f"{axis}, {low}, {high}, torch.{name}"
            t(
                f"{Q}.quantize_per_channel(x, {scales}, {zeros}, {limits}), {Q}.quantize_per_channel(x, {scales}.double(), {zeros}.int(), {limits})",
                f"{Q}.dequantize_per_channel({name}, {scales}, {zeros}, {limits}), {Q}.dequantize_per_channel({name}, {scales}, None, {limits})",
                f"{Q}.dequantize_per_channel({name}, {scales}, {zeros}.to(torch.int8), {limits}, out_dtype=torch.bfloat16)",
            )
        if axis >= 0:
            t(f"{Q}.fake_quant_per_channel(x, {scales}, {zeros}, {axis}, -8, 7)")
    t(f"{Q}.quantize_per_channel(z, torch.ones(0), torch.zeros(0), 1, 0, 255, torch.uint8)")


def tokens(t):
    limits = "-128, 127, torch.int8"
    tail = f"{Q}.quantize_per_token(x, s, z, {limits})"
    t(
        f"s, z = {Q}.choose_qparams_per_token_asymmetric(x, torch.int8); s, z, {tail}, {Q}.dequantize_per_token({tail}, s, z, {limits}, torch.float32)",
        f"s, z = {Q}.choose_qparams_per_token_asymmetric(e.reshape(-1, 1)[8:], torch.int8); s, z",
        f"{Q}.quantize_per_token(x, rows, rows_zero, {limits}), {Q}.dequantize_per_token(int8, rows, rows_zero, {limits}, torch.bfloat16)",
        f"{Q}.dequantize_per_token(int8, rows.double(), rows_zero.int(), {limits}, torch.float16)",
    )
    # Of half types PyTorch's kernel gives other element types than it states, and goes on with those.
    if t.type == "f32":
        t(f"s, z = {Q}.choose_qparams_per_token(x, torch.int8); {tail}")
    for size, zeros in ((2, "m2"), (6, "m6"), (12, "m12")):
        t(
            f"{Q}.quantize_per_channel_group(m, {zeros}s, {zeros}z, -8, 7, torch.int8, {size})",
            f"{Q}.dequantize_per_channel_group(mq, {zeros}s, {zeros}z, -8, 7, torch.int8, {size}, torch.float32)",
            f"{Q}.dequantize_per_channel_group(mq, {zeros}s, None, -8, 7, torch.int8, {size}, torch.bfloat16)",
        )
    t(f"{Q}.quantize_per_channel_group(m, m12s, m12z, -8, 7, torch.int8, 128)")


def fakes(t):
    fake = "torch.fake_quantize_per"
    for low, high in ((0, 255), (-128, 127), (-8, 7)):
        t(
            f"{fake}_tensor_affine(x, 0.11, 3, {low}, {high}), {fake}_tensor_affine(e, 0.5, 0, {low}, {high})",
            f"{fake}_tensor_affine(x, scale, zero.int(), {low}, {high})",
            f"{fake}_channel_affine(x, three, threes.int().abs(), 0, {low}, {high}), {fake}_channel_affine(x, five, fives.int().abs(), 2, {low}, {high})",
            f"torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.11, 3, {low}, {high})",
            f"torch.ops.aten.fake_quantize_per_channel_affine_cachemask(x, four, fours.int().abs(), 1, {low}, {high})",
            f"torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, zero.int(), torch.tensor([1]), {low}, {high})",
            f"torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, zero.int(), torch.tensor([0]), {low}, {high})",
        )


def blocks(t):
    for block in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (1, 1, 5), (3, 2, 5), (1, 2, 1), (3, 4, 1)):
        counts = [n // k for n, k in zip((3, 4, 5), block)]
        s, z = f"ones.expand({counts}) * 0.07", f"ones.expand({counts}).to(torch.int32) * 3"
        for name, low, high in KEPT[:4]:
            limits = f"torch.{name}, {low}, {high}"
            t(
                f"{AO}.quantize_affine(x, {block}, {s}, {z}, {limits}), {AO}.dequantize_affine({name}, {block}, {s}, {z}, {limits})",
                f"{AO}.dequantize_affine({name}, {block}, {s}, None, {limits}, output_dtype=torch.bfloat16)",
            )
            for mapping in ("ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"):
                # Nothing below zero to divide by.
                if low == 0 and mapping.startswith("SYM"):
                    continue
                t(
                    f"{AO}.choose_qparams_affine(x, '{mapping}', {block}, {limits})",
                    f"{AO}.choose_qparams_affine(x, '{mapping}', {block}, torch.{name}, eps=0.25, scale_dtype=torch.float32, zero_point_dtype=torch.int64, keepdim=True)",
                )


def products(t):
    t(
        "torch._int_mm(ia, ib), torch._int_mm(ia[:, ::2], ib[::2]), torch._int_mm(ib.t(), ia.t()), torch._int_mm(ia[:1], ib)",
        "torch._weight_int8pack_mm(w, iw, s24)",
    )


def fill(t):
    r = lambda *sizes, low=0.05, high=0.4: t.rand(*sizes, low=low, high=high).clamp_min(0.0625)
    whole = lambda *sizes: t.ints(-3, 4, *sizes)
    dtypes = {"int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16, "int32": torch.int32}
    for name, dtype in dtypes.items():
        info = torch.iinfo(dtype)
        t.bind(**{name: t.ints(max(info.min, -(2**20)), min(info.max, 2**20) + 1, 3, 4, 5, dtype=dtype)})
    f = torch.float32
    t.bind(
        x=t.rand(3, 4, 5) + t.rand(3, 4, 5) / 64,
        e=t.special(),
        z=t.rand(2, 0, 3),
        s=t.rand(),
        ones=t.rand(1, 1, 1, low=1, high=1),
        scale=torch.tensor([0.0371]),
        zero=torch.tensor([3]),
        three=r(3).to(f),
        four=r(4).to(f),
        five=r(5).to(f),
        threes=whole(3),
        fours=whole(4),
        fives=whole(5),
        rows=r(3, 4, 1).to(f),
        rows_zero=whole(3, 4, 1),
        m=t.rand(4, 12),
        mq=t.ints(-8, 8, 4, 12, dtype=torch.int8),
        m2s=r(4, 6).to(f),
        m6s=r(4, 2).to(f),
        m12s=r(4, 1).to(f),
        m2z=whole(4, 6),
        m6z=whole(4, 2),
        m12z=whole(4, 1),
        ia=t.ints(-128, 128, 17, 24, dtype=torch.int8),
        ib=t.ints(-128, 128, 24, 32, dtype=torch.int8),
        w=t.rand(5, 32),
        iw=t.ints(-128, 128, 24, 32, dtype=torch.int8),
        s24=r(24),
    )
    for part in (tensors, channels, tokens, fakes, blocks, products):
        part(t)


FAMILIES = {"quantised": (("bf16", "f32", "f16"), fill)}
