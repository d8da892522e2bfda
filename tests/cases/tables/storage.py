"""Types that are mostly for storage: unsigned integers of more than a byte, and floating-point numbers of one."""

import math

import torch

from elements import FLOATS_OF_A_BYTE, TYPES, UNSIGNED

MOVES = [
    "x.t() == y.t(), x[1:, ::2], x.reshape(-1), x.flatten()[3:9], x.unsqueeze(1).expand(4, 2, 6), x.unfold(1, 3, 2)",
    "torch.cat([x, y]), torch.cat([x, y], 1), torch.stack([x, y], 1), torch.cat([x, z])",
    "F.pad(x, (1, 2)), F.pad(x, (-1, 1, 2, 0))",
    "F.pad(x[None], (1, 2), mode='circular')",
    "x.roll(2, 1), x.repeat(2, 1), x.repeat_interleave(2, 1), x.tile(2, 2)",
    "torch.rot90(x), x.flip(0, 1)",
    "x[i], x[:, i], x.index_select(1, i), x[i, i], F.embedding(i, x)",
    "torch.where(m, x, y), torch.where(m, x[:1], y), x[m].numel() + torch.zeros(2)",
    "x.clone(), x.contiguous(), x.detach(), torch.zeros_like(x), torch.ones_like(x), x.new_zeros(2, 3), x.new_full((2,), 3)",
    "torch.select_scatter(x, y[0], 0, 2), torch.slice_scatter(x, y[:2], 0, 1, 3), torch.diagonal_scatter(x, y[0, :4])",
    "a = x.clone(); a[1:3] = y[:2]; a.t()[0] = y.t()[1]; a",
    "a = x.clone(); a.fill_(5); a[0].zero_(); a",
    "x.split(2, 1), x.chunk(3, 1), x.unbind(0)[2], torch.tensor_split(x, 4)",
    "x == y, x != y, x == x, x.eq(3), x.ne(1.0)",
    "x.all(), x.any(), x.any(1), x.all(0), z.all(), z.any()",
]


def moves(t):
    t.bind(z=t.values(0, 6), i=t.ints(0, 4, 3), m=t.rand(4, 6, dtype=torch.bool))
    t(*MOVES)


def bits(t):
    """Elements seen as other types, and what hashes them."""
    special = [0.0, -0.0, 1.0, -2.5, 3.0e-5, 6.0e-8, -5.9e-8, 6.1e-5, float("inf"), float("-inf"), 0.333, 65504.0]
    if t.dtype.is_floating_point:
        x = torch.tensor(special).to(t.dtype).reshape(2, 6)
    else:
        x = t.ints(0, 200, 2, 6).to(t.dtype)
    t.bind(x=x, y=torch.cat([x, x.flip(0)[:, :2]], 1).contiguous(), e=x[:0], s=x[0, 2])
    size = x.element_size()
    t("torch.hash_tensor(x), torch.hash_tensor(s)", "torch.hash_tensor(e, 1)", "torch.hash_tensor(x, 0), torch.hash_tensor(x, 1, keepdim=True), torch.hash_tensor(x, (0, 1))")
    for name, dtype in TYPES.items():
        if name == "bool" or (dtype.is_floating_point and not t.dtype.is_floating_point and size != dtype.itemsize):
            continue
        t(f"y.view({name})")
        if size == dtype.itemsize:
            t(f"s.view({name})", f"x.t().view({name})", f"x.view({name}).view({t.type})", f"e.view({name})")
    if t.dtype.is_floating_point:
        own = {2: "i16", 4: "i32", 8: "i64"}[size]
        t(f"(x.view({own}) + 1).view({t.type})")


def unsigned(t):
    top = {"u16": 2**16, "u32": 2**32, "u64": 2**64}[t.type]
    # Up to 2^60, which random numbers are drawn below.
    t.values = lambda *sizes: t.ints(0, min(top, 2**60), *sizes).to(t.dtype)
    t.bind(x=t.values(4, 6), y=t.values(4, 6), s=t.ints(0, 9, 4, 6).to(t.dtype), v=t.values(37), e=t.special(), one=t.values())
    moves(t)
    for name, dtype in {**TYPES, **UNSIGNED}.items():
        t(f"x.to({name}), e.to({name}), v[::3].to({name}), one.to({name})")
        # What does not fit is the processor's affair, but for what all processors make of it.
        t(f"f.to({name}).to(x.dtype)", f=t.rand(5, 7, low=0, high=100))
        if dtype.is_floating_point:
            big = torch.tensor([0.0, -0.0, 1.9, -1.0, -1.9, -77.5, 65535.0, 32768.0, 65504.0, -128.0])
            t("f.to(x.dtype), f[::2].to(x.dtype)", f=big[big.to(dtype).isfinite()].to(dtype))
            if top > 2**16 and name in ("f32", "f64", "bf16"):
                t("f.to(x.dtype)", f=torch.tensor([2.0**31, 2.0**31 + 2**24, 3e9, -(2.0**31), -1e9]).to(dtype))
            if top > 2**32 and name in ("f32", "f64", "bf16"):
                t("f.to(x.dtype)", f=torch.tensor([2.0**40, 2.0**63, 2.0**63 + 2**60, 2.0**64 - 2**58, -(2.0**50)]).to(dtype))
        elif dtype != torch.bool:
            t("n.to(x.dtype)", n=t.rand(5, 7, low=-100, high=100, dtype=dtype) if name not in UNSIGNED else t.ints(0, 999, 5).to(dtype))
    t(
        "x & y, x | y, x ^ y, e & 7, e | 1, x & x[0]",
        "x * y, s * s, e * 3, e * e, x * 2.5, x / 3, x / y.float(), s / s.float(), x / x",
        "torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), x.clamp_max(1000), x.clamp_min(1000), s.clamp(2, 5)",
        "x.sum(), x.sum(1), s.prod(), s.prod(0), s.cumsum(1), s.cumprod(0), x.sum(dtype=torch.float64)",
        "x.sort(1), x.sort(0, descending=True), e.sort(), x.argsort(0), torch.msort(x)",
        "x.float().mean(1), x.double().std(0)",
        "s.gather(1, i[None]), s.scatter(1, i[None], y), s.scatter_add(0, i[None], s), x.take_along_dim(i[None], 1)",
        "x.sin(), x.float().sqrt(), x.sigmoid(), s.exp(), torch.sqrt(s), x.log(), x.rsqrt(), s.erf()",
        "x.floor(), x.ceil(), x.round(), x.trunc(), x.isnan(), x.isinf(), x.isfinite(), x.signbit()",
        "x.flip(0), x.diag(), x.relu()",
        f"torch.full((3,), 77, dtype={t.type}), torch.ones(2, dtype={t.type}), torch.tensor([1, {top - 1}], dtype={t.type})",
        f"torch.full((3,), {min(top - 1, 2**63 - 1)}, dtype={t.type}) == x[0, 0], e == {min(top - 1, 2**63 - 1)}",
        "x.long() >> 3, (x.long() << 2).to(x.dtype), x.double().floor()",
        "x.view(" + {"u16": "torch.int16", "u32": "torch.int32", "u64": "torch.int64"}[t.type] + "), x.long().int().view(torch.uint32)",
        "s.float() @ s.t().float(), torch.where(m, x, 3), torch.isin(x, y), x.bool(), torch.einsum('ij->ji', x)",
    )


def points(dtype):
    """All numbers of a type, what lies half way between neighbours, and what is next to that."""
    numbers = torch.arange(256, dtype=torch.uint8).view(dtype).double()
    numbers = sorted({x for x in numbers.tolist() if math.isfinite(x)})
    gap = numbers[-1] - numbers[-2]
    edges = [numbers[-1] + gap * k for k in (0.25, 0.5, 0.75, 1, 1.5, 2, 3)]
    halves = [(a + b) / 2 for a, b in zip(numbers, numbers[1:])] + edges + [-x for x in edges]
    halves = torch.tensor(halves, dtype=torch.float64).float()
    beside = [torch.nextafter(halves, torch.tensor(way)) for way in (math.inf, -math.inf)]
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e38, -1e38, 3.4028235e38, 1.17549435e-38, 5.9e-39]
    return torch.cat([torch.tensor(numbers).float(), halves, *beside, torch.tensor(ends)])


def bytes_of_floats(t):
    draw = lambda *sizes: t.rand(*sizes).to(t.dtype)
    t.values = draw
    codes = torch.arange(256, dtype=torch.uint8)
    exact = points(t.dtype)
    t.bind(x=draw(4, 6), y=draw(4, 6), c=codes.view(t.dtype), p=exact, d=exact.double(), one=draw())
    moves(t)
    own = t.type
    t(
        "c.float(), c.double(), c.bfloat16(), c.clone(), c.to(torch.float16)",
        f"p.to({own}), p[::3].to({own}), p[7].to({own}), p.bfloat16().to({own}), d.to({own}), (p * 0.5).half().to({own})",
        "c.isnan(), c.isinf(), c.isfinite(), c == c, c != c, c.bool()",
        "x.abs(), x * y, c[:, None] * y[0]",
        "x.mm(y.t()), x @ y.t(), torch.addmm(y[:, :4], x, y.t()), F.linear(x, y)",
        f"torch.full((3,), 2.5, dtype={own}), torch.ones(2, dtype={own}), torch.zeros(2, dtype={own}).float(), torch.full((2,), 3, dtype={own}).float()",
        "x.long(), x.int(), x.to(torch.int16), x.to(torch.uint32), (x.float() * 2).to(x.dtype)",
        f"w.to({own}), w.t().to({own}).contiguous(), n.to({own}), torch.tensor([1.0, -2.0, 1000.0, 1e9]).to({own})",
        "x.float().sum(1).to(x.dtype)",
        "torch.softmax(x, 1, dtype=torch.float32)",
        "(x.float() * 0.125 + y.float()).sum(0), x.to(torch.float32) @ y.t().to(torch.float32)",
        w=t.rand(5, 7, low=-300, high=300, dtype=torch.float32),
        n=t.ints(-500, 500, 40),
    )
    for name, dtype in FLOATS_OF_A_BYTE.items():
        t(f"c.to({name}), x.to({name})")
    if t.type == "f8e8m0fnu":
        return
    # What CPUs multiply: multiples of 16.
    a, b = t.rand(16, 32).to(t.dtype), t.rand(48, 32).to(t.dtype)
    scales = dict(sa=t.rand(low=0.25, high=2.0, dtype=torch.float32), sb=t.rand(low=0.25, high=2.0, dtype=torch.float32))
    rows = dict(sa=t.rand(16, 1, low=0.25, high=2.0, dtype=torch.float32), sb=t.rand(1, 48, low=0.25, high=2.0, dtype=torch.float32))
    bias = t.rand(48, dtype=torch.float32)
    for sets in (scales, rows):
        t(
            "torch._scaled_mm(a, b.t(), sa, sb, out_dtype=torch.float32)",
            "torch._scaled_mm(a, b.t(), sa, sb, out_dtype=torch.float32, bias=bias)",
            "torch._scaled_mm(a, b.t(), sa, sb, out_dtype=torch.bfloat16)",
            a=a,
            b=b,
            bias=bias,
            **sets,
        )


def modules(t):
    """Programs that overwrite their inputs, and buffers whose elements do not lie in order."""
    inputs = dict(x=t.rand(4, 6), y=t.rand(4, 6), v=t.rand(6), i=t.ints(0, 4, 3))
    for text in (
        "x.add_(y); x + 1",
        "x[1:3].mul_(2); y.copy_(x); x.sum(0), y[0]",
        "x.t()[2] = 3; x[:, 1].add_(v[:4]); x * y",
        "v += x[0]; x -= v; x.unsqueeze(0), v",
        "x.index_put_((i,), y[i]); x.index_add_(0, i, y[:3]); y.zero_(); x",
        "x.view(-1)[::5].fill_(1); y.as_strided((3, 2), (2, 7), 1).add_(1); x.clone()",
        "x.masked_fill_(y > 0, 2); x.clamp_(min=0); y.transpose(0, 1).sub_(1); x",
        "x.scatter_(1, i[None], v[None, :3]); torch.cat([x, y]).mul_(3)",
        "x.neg_(); x.swapaxes(0, 1).copy_(y.t()); v.fill_(5); x.flip(0), v",
    ):
        t.module(text, inputs)
    wide, line = t.rand(6, 12), t.rand(40)
    buffers = dict(
        turned=t.rand(6, 4).t(),
        sliced=wide[1:5, 1::2],
        spread=t.rand(4, 1).expand(4, 6),
        diagonal=wide[:6, :6].diagonal(),
        shared=line.as_strided((4, 6), (3, 2), 5),
        windows=line.unfold(0, 6, 4)[:4],
        backed=wide.view(-1)[7:31].view(4, 6),
        moved=t.rand(6, 2, 4).permute(2, 1, 0)[:, 1],
    )
    for name in buffers:
        t.module(f"x * {name}, {name}.sum(0), {name}.clone().reshape(-1)", inputs, **{name: buffers[name]})
    t.module("x + turned * sliced - spread, shared + windows, backed.t() * moved.t(), turned.contiguous(), diagonal + v", inputs, **buffers)
    t.module("x.copy_(shared); y.add_(turned); x[i] + windows[i], moved.flip(1)", inputs, **buffers)


FAMILIES = {
    "modules": (("f32", "f64", "bf16", "i64", "u8"), modules),
    "bits": (tuple(name for name in TYPES if name != "bool"), bits),
    "unsigned": (tuple(UNSIGNED), unsigned),
    "float8": (tuple(FLOATS_OF_A_BYTE), bytes_of_floats),
}
