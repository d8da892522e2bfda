"""What operators check of their data: programs with inputs that they take, and others that they must refuse, as PyTorch does.

Each is a program of its own.
"""

import math

import torch

INFINITE = [math.nan, math.inf, -math.inf]


def with_element(tensor, place, value):
    """A copy with another element at a place in row-major order."""
    tensor = tensor.clone()
    tensor.view(-1)[place] = value
    return tensor


def others(name, tensor, values, place=1):
    return [{name: with_element(tensor, place, value)} for value in values]


def losses(t):
    p, y = torch.tensor([0.25, 1.0, 0.5, 0.0]), torch.tensor([0.0, 1.0, 0.5, 0.25])
    outside = [*INFINITE, -0.5, -1e-30, 1.25]
    bad = others("p", p, outside) + others("y", y, outside, 3)
    for text in [
        "F.binary_cross_entropy(p, y)",
        "F.binary_cross_entropy(p * 1.0, y, weight=p.exp(), reduction='none')",
        "F.binary_cross_entropy(p.double(), y.double(), reduction='sum')",
        "F.binary_cross_entropy(p.half(), y.half(), reduction='none')",
    ]:
        t.data(text, {"p": p, "y": y}, bad, {"p": torch.tensor([1.0, 0.0, 1.0, 0.0])})
    t.data("F.binary_cross_entropy(p.reshape(2, 2), y.reshape(2, 2).t())", {"p": p, "y": y}, bad)
    t.data("F.binary_cross_entropy(p[0], y[0])", {"p": p, "y": y}, others("p", p, [-0.5, 2.0], 0))
    t.data("F.binary_cross_entropy(p, y)", {"p": p, "y": y}, bad, {"p": p[:0], "y": y[:0]}, dynamic=["p", "y"])
    labels = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0]])
    for text in ["F.multilabel_margin_loss(x, l)", "F.multilabel_margin_loss(x[0], l[0], reduction='sum')"]:
        bad = others("l", labels, [-2, 4, 2**62, -(2**62)], 1) + others("l", labels, [-2, 4], 3)
        t.data(text, {"x": t.rand(2, 4), "l": labels}, bad, {"l": torch.full((2, 4), -1)})
    target = torch.tensor([0, 3, 1])
    for text in ["F.multi_margin_loss(c, t)", "F.nll_loss(c, t)", "F.cross_entropy(c, t, label_smoothing=0.1)"]:
        t.data(text, {"c": t.rand(3, 4), "t": target}, others("t", target, [-1, 4, 2**62]))


def masks(t):
    x, source = t.rand(3, 4), t.rand(6)
    few = x > 1.5
    many = torch.ones(3, 4, dtype=torch.bool)
    exact = many.clone()
    exact[0] = exact[1, :2] = False
    for text in ["x.masked_scatter(m, s)", "(x * 2).masked_scatter(m, s + 1).sum(1)", "y = x.clone(); y.masked_scatter_(m, s); y"]:
        t.data(text, {"x": x, "m": few, "s": source}, [{"m": many}], {"m": exact}, {"m": ~many})
    t.data("x.masked_scatter(m, s)", {"x": x, "m": few, "s": source}, [{"s": source[:0]}, {"m": many}], {"m": ~many, "s": source[:0]}, dynamic=["s"])
    row = torch.tensor([True, False, False, True])
    t.data("x.masked_scatter(m, s)", {"x": x, "m": row, "s": source}, [{"m": torch.ones(4, dtype=torch.bool)}])
    rows = torch.tensor([True, False, True])
    bad = [{"m": torch.tensor(flags)} for flags in ([True] * 3, [False] * 3, [True, False, False])]
    for text in ["x.index_put((m,), v)", "y = x.clone(); y[m] = v; y", "x.index_put((m,), v, accumulate=True)"]:
        t.data(text, {"x": x, "m": rows, "v": t.rand(2, 4)}, bad)
    t.data("x.index_put((m,), v)", {"x": x, "m": rows, "v": t.rand(1, 4)}, [], {"m": torch.ones(3, dtype=torch.bool)})


def numbers(t):
    q = torch.tensor([0.5, 0.25])
    for text in ["torch.quantile(x, q)", "torch.quantile(x, q, 1)", "torch.nanquantile(x, q, 0)"]:
        t.data(text, {"x": t.rand(3, 4), "q": q}, others("q", q, [*INFINITE, -0.5, -1e-30, 1.5]), {"q": torch.tensor([0.0, 1.0])})
    s = torch.tensor([0.5, 2.0, 0.0])
    for text in ["torch.normal(0.0, s) * 0", "torch.normal(s, s) * 0"]:
        t.data(text, {"s": s}, others("s", s, [math.nan, -0.5, -1e-30]), {"s": torch.tensor([-0.0, 1.0, 0.0])})
    w = torch.tensor([0.5, 0.25, 0.0, 1.0])
    for text in ["torch.multinomial(w, 2) * 0", "torch.multinomial(w, 2, True) * 0", "torch.multinomial(w.repeat(2, 1), 3) * 0"]:
        bad = others("w", w, [*INFINITE, -0.5]) + [{"w": w * 0}]
        t.data(text, {"w": w}, bad, {"w": torch.tensor([0.0, 1.0, 0.0, 0.0])})


def matrices(t):
    lu, pivots = torch.linalg.lu_factor(torch.eye(3) * 4 + t.rand(3, 3))
    b = t.rand(3, 2)
    rows = [[0, 2, 3], [4, 2, 3], [-1, 2, 3], [1, 2, 0], [1, 2, 4], [2**31 - 1, 1, 1]]
    bad = [{"k": torch.tensor(row, dtype=torch.int32)} for row in rows]
    for text in [
        "torch.linalg.lu_solve(a, k, b)",
        "torch.linalg.lu_solve(a, k, b, adjoint=True)",
        "torch.linalg.lu_solve(a, k, b.t(), left=False)",
        "torch.linalg.lu_solve(a.repeat(2, 1, 1), k.repeat(2, 1), b.repeat(2, 1, 1))",
        "torch.view_as_real(torch.linalg.lu_solve(torch.complex(a, a), k, torch.complex(b, b)))",
        "torch.lu_unpack(a, k)",
        "torch.lu_solve(b, a, k)",
    ]:
        t.data(text, {"a": lu, "k": pivots, "b": b}, bad)
    symmetric = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    t.data("torch.linalg.ldl_factor(a)", {"a": symmetric}, others("a", symmetric, [math.nan], 8))
    # The upper triangle is not read.
    t.data("torch.linalg.eigvalsh(a)", {"a": symmetric}, [], *others("a", symmetric, INFINITE, 1))


def quantisation(t):
    x, scale, zero = t.rand(3, 4), torch.tensor([0.5, 0.25, 1.0]), torch.tensor([3, 4, 5], dtype=torch.int32)
    text = "torch.fake_quantize_per_channel_affine(x, s, z, 0, 0, 255)"
    t.data(text, {"x": x, "s": scale, "z": zero}, others("z", zero, [-1, 256, 2**31 - 1]), *others("z", zero, [0, 255]))
    halves = torch.arange(-6.0, 6.0).reshape(3, 4) / 8
    t.data(text, {"x": halves, "s": scale, "z": zero.float()}, [], *others("z", zero.float(), [-1.0, 256.0]))


def counts(t):
    """Numbers that are parameters."""
    n = "n = i.item(); torch._check(n >= -20); torch._check(n <= 20); "
    number = lambda value: {"i": torch.tensor(value)}
    t.data(n + "torch.bincount(c, minlength=n).sum()", {"c": torch.tensor([0, 2]), **number(2)}, [number(-1)], number(0))
    t.data(n + "torch.multinomial(w, n).sum() * 0", {"w": torch.arange(6.0), **number(2)}, [number(0), number(-1), number(7)])


def fill(t):
    for part in (losses, masks, numbers, matrices, quantisation, counts):
        part(t)


FAMILIES = {"checks": (["f32"], fill)}
