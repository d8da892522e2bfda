"""Programs whose sizes, starts and counts are read from data: what the program states of them holds, or the run fails.

Each is a program of its own, with one set of inputs that it takes and several that it must refuse, as PyTorch does.
"""

import torch

HUGE = 2**62

# k rows of x, stated in terms of the size of x.
K = "k = i.item(); torch._check(k >= 0); torch._check(k <= x.shape[0]); "
# At least one.
K1 = "k = i.item(); torch._check(k > 0); torch._check(k <= x.shape[0]); "
# A position.
P = "k = i.item(); torch._check(k >= 0); torch._check(k < x.shape[0]); "
# A number with a bound of its own.
N = "k = i.item(); torch._check(k >= 0); torch._check(k <= 20); "
# 0 <= a <= b <= x.shape[0]
AB = (
    "a = i.item(); b = j.item(); torch._check(a >= 0); torch._check(a <= b); torch._check(b <= x.shape[0]); "
)
# Lengths of two parts.
SUM = "a, b = ab.tolist(); torch._check(a >= 0); torch._check(b >= 0); torch._check(a + b == x.shape[0]); "


def scalar(value, dtype=torch.int64):
    return torch.tensor(value, dtype=dtype)


def lengths(t):
    """Windows along an axis whose length, or start, is data."""
    bad = [-1, 9, 50, HUGE, -HUGE]
    for text in [
        K + "x.narrow(0, 0, k) * 2",
        K + "x[:k] + 1",
        K + "x[k:] * 3",
        K + "y = x.clone(); y.narrow(0, 0, k).fill_(7); y",
        K + "y = x.clone(); y[:k] += 1; y",
        K + "y = x.clone(); y[k:].mul_(2); y",
        K + "torch.split(x, [k, x.shape[0] - k])",
        K + "x.narrow(0, x.shape[0] - k, k).sum(0)",
        K + "x[:k].sum(0)",
        K + "torch.cat([x[k:], x[:k]])",
        K + "torch.cat([x, x[:k]]).cumsum(0)",
        K + "x[:k].t() @ x[:k]",
        K + "torch.nn.functional.softmax(x[:k], 1)",
        K + "x.new_zeros(k, 3)",
        K + "x[:k].flip(0)",
        K + "x[:k].transpose(0, 1).contiguous()",
        K + "torch.stack([x[:k], x[:k] * 2])",
        K + "x[0].expand(k, 3) + 1",
        K + "x[:k].repeat(2, 1)",
        K + "torch.where(torch.arange(x.shape[0]).unsqueeze(1) < k, x, -x)",
        K + "x[:k].unsqueeze(0).expand(2, -1, -1).reshape(2 * k, 3)",
        K + "y = x.clone(); torch._check(x.shape[0] - k >= 0); y.narrow(0, k, x.shape[0] - k).zero_(); y",
    ]:
        t.data(text, {"x": t.x, "i": scalar(3)}, [{"i": scalar(v)} for v in bad], dynamic=["x"])
    for text in [
        P + "x.select(0, k) * 2",
        P + "x[k] + 1",
        P + "y = x.clone(); y[k] = 5.0; y",
        P + "y = x.clone(); y.select(0, k).add_(1); y",
        P + "torch.select_scatter(x, x[0] * 2, 0, k)",
        P + "x.narrow(0, k, 1)",
        P + "x[k:].amax(0)",
        P + "torch.index_select(x, 0, i.reshape(1))",
    ]:
        t.data(text, {"x": t.x, "i": scalar(2)}, [{"i": scalar(v)} for v in [-1, 8, 9, HUGE, -HUGE]], dynamic=["x"])


def relations(t):
    """Two numbers, and relations between them."""
    bad = [(-1, 3), (4, 3), (2, 9), (9, 9), (0, HUGE), (HUGE, HUGE), (-HUGE, 2)]
    for text in [
        AB + "x[a:b] * 2",
        AB + "x.narrow(0, a, b - a).sum(0)",
        AB + "y = x.clone(); y[a:b] = 0; y",
        AB + "torch.cat([x[:a], x[b:]])",
        AB + "torch.split(x, [a, b - a, x.shape[0] - b])",
        AB + "x[a:b].cumsum(0)",
        AB + "torch.arange(a, b) * 2",
    ]:
        inputs = {"x": t.x, "i": scalar(2), "j": scalar(5)}
        t.data(text, inputs, [{"i": scalar(a), "j": scalar(b)} for a, b in bad], dynamic=["x"])
    bad = [(-1, 9), (9, -1), (4, 5), (3, 4), (HUGE, 2), (HUGE, HUGE), (-HUGE, HUGE)]
    for text in [
        SUM + "torch.split(x, [a, b])",
        SUM + "x.narrow(0, 0, a).sum(0) - x.narrow(0, a, b).sum(0)",
        SUM + "torch.cat([x[:b] * 2, x[b:]])",
    ]:
        t.data(text, {"x": t.x, "ab": scalar([3, 5])}, [{"ab": scalar(list(v))} for v in bad], dynamic=["x"])
    two = "k, m = ab.tolist(); torch._check(k > 0); torch._check(m > 0); torch._check(k * m == x.shape[0]); "
    bad = [(-2, -4), (3, 2), (0, 8), (8, 2), (HUGE, 4), (HUGE, HUGE), (-1, 8)]
    for text in [two + "x.view(k, m, 3) * 2", two + "x.reshape(k, m, 3).sum(1)"]:
        t.data(text, {"x": t.x, "ab": scalar([2, 4])}, [{"ab": scalar(list(v))} for v in bad], dynamic=["x"])


def divisions(t):
    bad = [0, -2, 3, 9, HUGE, -HUGE]
    whole = K1 + "torch._check(x.shape[0] % k == 0); "
    for text in [
        whole + "x.view(k, x.shape[0] // k, 3) + 1",
        whole + "x.view(x.shape[0] // k, k, 3).amax(1)",
        whole + "x.reshape(k, -1).sum(1)",
    ]:
        t.data(text, {"x": t.x, "i": scalar(4)}, [{"i": scalar(v)} for v in bad], dynamic=["x"])
    even = K + "torch._check(k % 2 == 0); "
    for text in [even + "x[: k // 2] * 2", even + "x[:k].view(k // 2, 2, 3).sum(1)", even + "x * k"]:
        t.data(text, {"x": t.x, "i": scalar(4)}, [{"i": scalar(v)} for v in [3, -2, 10, HUGE, -HUGE]], dynamic=["x"])
    same = "k = i.item(); torch._check(k == x.shape[0]); "
    for text in [same + "x.view(k, 3) + 1", same + "x + torch.arange(k).unsqueeze(1)", same + "x * 2"]:
        t.data(text, {"x": t.x, "i": scalar(8)}, [{"i": scalar(v)} for v in [7, 9, -8, HUGE, -HUGE]], dynamic=["x"])
    either = "k = i.item(); torch._check((k > 2) | (k < -5)); torch._check(torch.sym_not(k == 4)); "
    t.data(either + "x * k", {"x": t.x, "i": scalar(3)}, [{"i": scalar(v)} for v in [0, 2, -5, 4]])


def counts(t):
    """Numbers with bounds of their own; counts."""
    bad = [-1, 21, 50, HUGE, -HUGE]
    for text in [
        N + "torch.full((k,), 2.5)",
        N + "torch.zeros(k, 3) + x[0]",
        N + "torch.arange(k) * 2",
        N + "x[0].expand(k, 3) * 1",
        N + "x.repeat(k, 1).sum()",
        N + "torch.cat([x, torch.ones(k, 3)])",
        N + "torch.nn.functional.pad(x, (0, 0, 0, k))",
        N + "torch.ones(k, 4).cumsum(0)",
        N + "x * torch.sym_max(k, 5) + torch.sym_min(k, 2)",
        N + "torch.eye(k)",
    ]:
        t.data(text, {"x": t.x, "i": scalar(3)}, [{"i": scalar(v)} for v in bad])
    bound = "torch._check(r.shape[0] <= 40); "
    repeats = scalar([1, 0, 2, 1, 0, 3, 1, 1])
    worse = [[1, 0, 2, -1, 0, 3, 1, 1], [-1] * 8, [50, 0, 0, 0, 0, 0, 0, 0], [HUGE, 0, 0, 0, 0, 0, 0, 0]]
    for text in [
        f"r = x.repeat_interleave(c, 0); {bound}r + 1",
        f"r = torch.repeat_interleave(c); {bound}r",
    ]:
        t.data(text, {"x": t.x, "c": repeats}, [{"c": scalar(v)} for v in worse])
    bins = "r = torch.bincount(c); torch._check(r.shape[0] <= 10); "
    worse = [[1, -1], [3, 10], [0, HUGE], [-HUGE, 2]]
    t.data(bins + "r * 2", {"c": scalar([1, 3])}, [{"c": scalar(v)} for v in worse])
    counted = {"c": scalar([1, 3, 3])}
    more = {"c": scalar([0, 65535, 9])}
    for text in ("torch.bincount(c)", "torch.bincount(c, minlength=6).float().cumsum(0)", "torch.bincount(c, weights=c.double())"):
        t.data(text, counted, [{"c": scalar(v)} for v in ([1, -1, 2], [-HUGE, 2, 2])], more)
    bytes_of = {"c": scalar([255, 7, 7], torch.uint8)}
    t.data("torch.bincount(c) + 1", bytes_of, [], {"c": scalar([0, 0, 1], torch.uint8)})


def unbounded(t):
    """Sizes that nothing bounds, inside programs and of their results."""
    n = "k = i.item(); "
    for text in [
        n + "torch.arange(k)",
        n + "torch.zeros(k, 3) + x[0]",
        n + "torch.cat([torch.zeros(k, 3), x])",
        n + "torch.sort(torch.arange(k).sin(), descending=True)[0]",
        n + "torch.arange(k).float().cumsum(0).sum() + x",
        n + "y = torch.arange(k).float(); torch.cat([y[y > 2], y])",
        n + "torch.nonzero(torch.arange(k) % 3)",
        n + "torch.unique(torch.arange(k) % 7, return_counts=True)[1]",
        n + "(torch.arange(k).unsqueeze(1) * x[0]) @ x.t()",
    ]:
        t.data(text, {"x": t.x, "i": scalar(5)}, [{"i": scalar(v)} for v in (-1, -HUGE)], {"x": -t.x, "i": scalar(0)}, {"x": t.x, "i": scalar(700)})
    repeats, more = scalar([1, 0, 2, 1, 0, 3, 1, 1]), scalar([0, 90, 0, 0, 7, 0, 0, 0])
    for text in ["x.repeat_interleave(c, 0)", "torch.repeat_interleave(c)", "x.repeat_interleave(c, 0).softmax(0).sum(0)"]:
        t.data(text, {"x": t.x, "c": repeats}, [{"c": scalar([-1] * 8)}], {"x": t.x, "c": more}, {"x": t.x, "c": repeats * 0})
    t.data("torch.bincount(c)", {"c": scalar([1, 3, 3])}, [{"c": scalar([1, -1, 2])}], {"c": scalar([0, 70000, 9])})


def masks(t):
    few = "torch._check(r.shape[0] <= 3); "
    x = torch.tensor([0.0, 1.0, 0.0, -2.0, 0.0, 3.0])
    full = torch.ones(6)
    for text in [
        f"r = x.nonzero(); {few}r",
        f"r = x[x > 0]; {few}r * 2",
        f"r = torch.masked_select(x, x != 0); {few}r.cumsum(0)",
        f"r = torch.unique(x.abs().clamp(max=2)); {few}r",
    ]:
        others = [full] if "unique" not in text else []
        others += [torch.arange(6.0) / 4 + 0.5]
        t.data(text, {"x": x}, [{"x": other} for other in others])
    for text in [
        "r = x.nonzero().squeeze(1); y = x.clone(); y[r] = 9; torch._check(r.shape[0] == 3); y",
        "r = x.nonzero(); torch._check(r.shape[0] % 3 == 0); r.sum()",
    ]:
        t.data(text, {"x": x}, [{"x": torch.tensor([1.0, 0, 0, 2, 0, 0])}, {"x": torch.tensor([1.0, 0, 0, 0, 0, 0])}])


def scalars(t):
    """Floating-point numbers and truth values from data."""
    f, b = scalar(2.25, torch.float32), scalar(True, torch.bool)
    positive = "v = f.item(); torch._check(v > 0); "
    bad = [{"f": scalar(v, torch.float32)} for v in (-1.0, 0.0, float("nan"))]
    for text in [
        positive + "x * v",
        positive + "x + torch.sym_sqrt(v)",
        positive + "x / v - 1.5 * v",
        positive + "torch.full((3,), v)",
    ]:
        t.data(text, {"x": t.x, "f": f}, bad)
    t.data("v = f.item(); x * v", {"x": t.x, "f": f}, [])
    t.data("v = b.item(); x * torch.sym_ite(v, 3, 4)", {"x": t.x, "b": b}, [])
    t.data("v = b.item(); torch._check(v); x + 1", {"x": t.x, "b": b}, [{"b": scalar(False, torch.bool)}])
    rooted = "x * torch.sym_sqrt(x.shape[0]) + torch.sym_min(x.shape[0], 4)"
    t.data(rooted, {"x": t.x}, [], dynamic=["x"])


def branches(t):
    inner = "g = lambda x, i: (lambda k: (torch._check(k >= 0), torch._check(k <= 8), x[:k].sum(0))[2])(i.item()); "
    bad = [-1, 9, HUGE]
    text = inner + "torch.cond(p > 0, g, lambda x, i: x.sum(0), (x, i))"
    inputs = {"x": t.x, "i": scalar(3), "p": scalar(1)}
    t.data(text, inputs, [{"i": scalar(v)} for v in bad], {"i": scalar(99), "p": scalar(0)})
    text = "torch.cond(x.shape[0] > 5, lambda x: x * 2, lambda x: x + 1, (x,))"
    t.data(text, {"x": t.x}, [], {"x": t.x[:4]}, dynamic=["x"])
    text = "k = i.item(); torch.cond(k > 5, lambda x: x * 2, lambda x: x + 1, (x,))"
    t.data(text, {"x": t.x, "i": scalar(3)}, [], {"i": scalar(HUGE)}, {"i": scalar(-HUGE)})
    text = K + "torch.cond((x.sum() > 0), lambda y: y * 2, lambda y: y + 1, (x[:k] * 1,))"
    t.data(text, {"x": t.x, "i": scalar(3)}, [{"i": scalar(v)} for v in [-1, 9, HUGE]], dynamic=["x"])
    text = K + "LOOP(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2), (torch.tensor(0), x[:k] * 1))[1]"
    t.data(text, {"x": t.x, "i": scalar(3)}, [{"i": scalar(v)} for v in [-1, 9, HUGE]], dynamic=["x"])


def fill(t):
    t.x = t.rand(8, 3, dtype=torch.float32)
    for part in (lengths, relations, divisions, counts, unbounded, masks, scalars, branches):
        part(t)


FAMILIES = {"data": (["f32"], fill)}
