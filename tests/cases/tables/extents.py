"""Programs whose sizes, starts, strides and counts are data, at the edges of what they may be: windows onto storages,
axes without elements, chains of relations, loops and branches around them.

Each is run with numbers on both sides of its edges; the exported program says which of them it takes, and what it gives.
"""

import torch

from tables.data import HUGE, K, K1, scalar

EDGE = 2**63
BAD = [-1, 9, 50, HUGE, -HUGE]


def program(t, text, inputs, *sets, dynamic=()):
    """With further sets of inputs, which name only what is other."""
    t.sized(text, inputs, *(one for item in sets for one in (item if isinstance(item, list) else [item])), dynamic=dynamic)


def strides(t):
    """Sizes, strides and offsets of windows onto storage, read from data."""
    x, v = t.x, t.rand(24, dtype=torch.float32)
    s = "s = i.item(); torch._check(s >= 0); torch._check(s <= 7); "
    for text in [
        s + "v.as_strided((3, 2), (s, 1)) + 1",
        s + "v.as_strided((2, 3), (1, s)) * 2",
        s + "v.as_strided((2, 2), (s, s)).sum(0)",
        s + "v.as_strided((4, 2), (2, 1), s) + 1",
        s + "v.as_strided((s, 2), (3, 1)) + 1",
        s + "v.as_strided((s, 2), (2, s)).sum(0)",
        s + "v.as_strided((s, 3), (1, 1), s).cumsum(0)",
        s + "y = v.clone(); y.as_strided((3,), (s + 1,)).fill_(7); y",
        s + "y = v.clone(); y.as_strided((s, 2), (3, 1)).add_(1); y",
        s + "y = v.clone(); y.as_strided((2, 2), (5, 1), s).mul_(2); y",
        s + "torch.as_strided_scatter(v, v[:4].view(2, 2) * 2, (2, 2), (s + 2, 1))",
        s + "torch.as_strided_scatter(v, v[:4].view(2, 2) * 2, (2, 2), (2, 1), s)",
        s + "v[::s + 1] * 2",
        s + "v[s::s + 1].sum()",
        s + "v.unfold(0, 3, s + 1).sum(1)",
        s + "v.view(4, 6)[:, ::s + 1] + 1",
        s + "y = v.clone(); y[::s + 1] = 0; y",
        s + "torch.slice_scatter(v, v[::s + 1] * 2, 0, 0, 24, s + 1)",
    ]:
        program(t, text, {"v": v, "i": scalar(3)}, [{"i": scalar(k)} for k in [-1, 8, 50, HUGE, -HUGE, EDGE - 1, -EDGE]],
               {"i": scalar(0)}, {"i": scalar(2)}, {"i": scalar(7)})
    # Bounds come from the size of the storage alone: the run has to look.
    r = "a, b = ab.tolist(); torch._check(a >= 0); torch._check(b >= 0); torch._check(a * 2 + b * 3 < v.shape[0]); torch._check(a <= 1000000); torch._check(b <= 1000000); "
    bad = [(-1, 1), (12, 0), (0, 8), (HUGE, 0), (0, HUGE), (HUGE, HUGE), (EDGE - 1, EDGE - 1)]
    for text in [
        r + "v.as_strided((3, 4), (a, b)) + 1",
        r + "v.as_strided((3, 4), (a, b)).sum(1)",
    ]:
        program(t, text, {"v": v, "ab": scalar([4, 1])}, [{"ab": scalar(list(k))} for k in bad], {"ab": scalar([0, 7])}, {"ab": scalar([11, 0])})
    # Not stated at all: PyTorch looks, and so must we.
    loose = "s = i.item(); torch._check(s >= 0); torch._check(s <= 1000); "
    bad = [-1, 12, 100, 1000, 1001, HUGE, -HUGE]
    for text in [
        loose + "v.as_strided((3, 2), (s, 1)) + 1",
        loose + "v.as_strided((2, 2), (2, 1), s + 9) + 1",
        loose + "v.as_strided((s, 2), (2, 1)).sum(0)",
        loose + "y = v.clone(); y.as_strided((3, 2), (s, 1)).mul_(7); y",
    ]:
        program(t, text, {"v": v, "i": scalar(5)}, [{"i": scalar(k)} for k in [12 if "s + 9" not in text else 13] + bad[2:] + [-1]],
               {"i": scalar(11)} if "s + 9" not in text else {"i": scalar(12)})


def more(t):
    x = t.x
    bad = [{"i": scalar(k)} for k in BAD]
    one = {"x": x, "i": scalar(3)}
    for text in [
        K + "x[x.shape[0] - k:].flip(0) * 2",
        K + "torch.cat([x[:k], x.new_ones(x.shape[0] - k, 3)]).softmax(0)",
        K + "a = x[:k]; b = x[k:]; torch.cat([b, a, b]).amax(1)",
        K + "torch.triu(torch.ones(k, k)) @ x[:k]",
        K + "(x[:k] @ x[:k].t()).softmax(-1).sum(0)",
        K + "F.scaled_dot_product_attention(x[None, None, :k], x[None, None], x[None, None])",
        K + "F.scaled_dot_product_attention(x[None, None], x[None, None, :k] + 1, x[None, None, :k]) + (k > 0)",
        K + "y = torch.zeros(x.shape[0] + 2, 3); y[:k] = x[:k]; y[k:k + 2] = 9; y",
        K + "torch.meshgrid(torch.arange(k), torch.arange(x.shape[0]), indexing='ij')[0] + 1",
        K + "x[:k].unsqueeze(1).expand(-1, k, -1).reshape(k * k, 3).sum(0)",
        K + "m = torch.arange(x.shape[0]) < k; torch.where(m[:, None], x, 0.0).sum(0)",
        K + "torch.tensor_split(x, (k,))[1] + 1",
        K + "x[:k].sort(0).values",
        K + "x[:k].argsort(0)",
        K + "F.layer_norm(x[:k], (3,))",
        K + "F.pad(x[:k], (1, 1, 2, 0))",
        K + "x[:k].reshape(-1)[: k * 2] + 1",
        K + "x.index_add(0, torch.arange(k), x[:k])",
        K + "x.scatter(0, torch.arange(k).unsqueeze(1).expand(k, 3), 5.0)",
        K + "x.gather(0, torch.arange(k).unsqueeze(1).expand(k, 3)) * 2",
        K + "y = x.clone(); y[torch.arange(k)] = x[:k] * 2; y",
        K + "y = x.clone(); y[:k].copy_(x[:k].flip(0)); y",
        K + "torch.einsum('ab,cb->ac', x[:k], x)",
        K + "torch.diag_embed(x[:k, 0])",
        K + "x[:k].std(0, correction=0).nan_to_num()",
        K + "torch.searchsorted(torch.arange(k).float(), x[:, 0].contiguous())",
        K + "x[:k].logcumsumexp(0)",
        K + "torch.outer(x[:k, 0], x[:, 1])",
        K + "torch.bmm(x[None, :k], x[None, :k].transpose(1, 2))",
        K + "torch.vstack([x[:k]] * 3)[k:] + 1",
    ]:
        program(t, text, one, bad, {"i": scalar(0)} if "sort(" not in text else {"i": scalar(1)}, {"i": scalar(8)}, dynamic=["x"])
    for text in [
        K1 + "x[:k].amax(0) - x[:k].amin(0)",
        K1 + "x[:k].argmax(0)",
        K1 + "x[:k].topk(1, 0).values",
        K1 + "x[:k].mean(0)",
        K1 + "x[k - 1]",
        K1 + "x[:k][-1] * 2",
        K1 + "torch.logsumexp(x[:k], 0)",
        K1 + "x[:k].cummax(0).values",
        K1 + "x[:k].median(0).values",
        K1 + "torch.linspace(0, 1, k)",
        K1 + "x.unflatten(0, (1, x.shape[0]))[:, :k].sum(1)",
        K1 + "x[:: k] + 1",
        K1 + "x[:x.shape[0] // k] * 2",
        K1 + "x[: x.shape[0] - x.shape[0] % k].sum(0)",
        K1 + "n = (x.shape[0] + k - 1) // k; F.pad(x, (0, 0, 0, n * k - x.shape[0])).view(n, k, 3).sum(1)",
    ]:
        program(t, text, one, [{"i": scalar(k)} for k in [0] + BAD], {"i": scalar(1)}, {"i": scalar(8)}, dynamic=["x"])
    # Three numbers of one tensor.
    abc = (
        "a, b, c = abc.tolist(); torch._check(a >= 0); torch._check(b >= a); torch._check(c >= b); "
        "torch._check(c <= x.shape[0]); "
    )
    wrong = [(-1, 0, 1), (3, 2, 4), (1, 5, 4), (1, 2, 9), (0, 0, HUGE), (HUGE, HUGE, HUGE), (0, HUGE, 3), (-HUGE, 0, HUGE)]
    for text in [
        abc + "torch.cat([x[a:b], x[b:c]]) * 2",
        abc + "x[a:b].sum(0) + x[b:c].sum(0) * 2 - x[c:].sum(0)",
        abc + "y = x.clone(); y[a:b] = 1; y[b:c] += 2; y[c:] = 3; y",
        abc + "torch.cat([x[c:], x[:a]]).cumsum(0)",
        abc + "torch.zeros(c - a, b - a).sum() + x[0]",
        abc + "(x[a:c] @ x[a:b].t()).sum()",
        abc + "x[a:c][b - a:] * 3",
        abc + "torch.arange(a, c, 2) + b",
    ]:
        program(t, text, {"x": x, "abc": scalar([1, 3, 6])}, [{"abc": scalar(list(w))} for w in wrong],
               {"abc": scalar([0, 0, 0])}, {"abc": scalar([8, 8, 8])}, dynamic=["x"])


def empties(t):
    """What has no value where there is nothing."""
    x = t.x
    for text in [
        "x[:k].amax(0)", "x[:k].amin(0)", "x[:k].max(0).values", "x[:k].max(0).indices", "x[:k].min(0).values",
        "x[:k].argmax(0)", "x[:k].argmin(0)", "x[:k].max()", "x[:k].min()", "x[:k].argmax()", "torch.aminmax(x[:k], dim=0)[0]",
        "x[:k].aminmax()", "x[:k].median(0).values", "x[:k].median()", "x[:k].nanmedian()", "(x[:k] * 9).long().median()", "(x[:k] * 9).int().median()",
        "x[:k].mode(0).values", "x[:k].kthvalue(1, 0).values", "x[:k].topk(1, 0).values",
        "x[:k].logsumexp(0)", "x[:k].mean(0)", "x[:k].mean()", "x[:k].std(0)", "x[:k].var()", "x[:k].prod(0)", "x[:k].all(0)", "x[:k].any(0)",
        "x[:k].norm()", "torch.linalg.vector_norm(x[:k], float('inf'), 0)", "torch.linalg.vector_norm(x[:k], float('-inf'), 0)", "x[:k].nanmedian(0).values", "x[:k].cummax(0).values",
        "x[:k].nansum(0)", "x[:k].softmax(0)", "x[:k].log_softmax(0)", "x[:k].sort(0).values", "x[:k].quantile(0.5, 0)", "torch.cdist(x[:k], x)", "x[:k].count_nonzero(0)",
        "torch.histc(x[:k], 4)", "torch.bincount(x[:k, 0].abs().long())", "F.max_pool1d(x[:k].t()[None], 1)", "F.avg_pool1d(x[:k].t()[None], 1)", "F.adaptive_avg_pool1d(x[:k].t()[None], 2)", "F.adaptive_max_pool1d(x[:k].t()[None], 2)",
        "F.interpolate(x[:k].t()[None], 4)", "F.interpolate(x[:k].t()[None], 4, mode='linear')", "F.pad(x[:k].t()[None], (1, 1), mode='replicate')", "F.pad(x[:k].t()[None], (0, 1), mode='circular')",
        "x[:k].roll(1, 0)", "x[:k].flip(0)", "x[:k].cumsum(0)", "x[:k].logcumsumexp(0)", "x[:k].index_select(0, torch.zeros(2, dtype=torch.long))", "x[:k][torch.zeros(2, dtype=torch.long)]",
        "x[:k].take(torch.zeros(2, dtype=torch.long))", "F.embedding(torch.zeros(2, dtype=torch.long), x[:k])", "x[:k].gather(0, torch.zeros(2, 3, dtype=torch.long))",
        "torch.searchsorted(x[:k, 0].contiguous(), x[:, 1].contiguous())", "torch.bucketize(x[:, 1].contiguous(), x[:k, 0].contiguous())", "F.layer_norm(x[:k].t(), (k,))" , "F.normalize(x[:k], dim=0)",
        "F.group_norm(x[None, :k].transpose(1, 2), 3)", "F.instance_norm(x[:k].t()[None])", "F.batch_norm(x[:k].t()[None], None, None, training=True)", "F.cross_entropy(x[:k], torch.zeros(k, dtype=torch.long))", "F.mse_loss(x[:k], x[:k] * 2)",
        "torch.trapezoid(x[:k], dim=0)", "x[:k].diff(dim=0)", "x[:k].unfold(0, 1, 1)", "x[:k].renorm(2, 0, 1.0)", "x[:k].dist(x[:k] * 2)", "torch.cov(x[:k].t())", "torch.fft.rfft(x[:k], dim=0).abs()", "torch.fft.fft(x[:k], dim=0).real", "torch.linalg.det(x[:k] @ x[:k].t())",
        "x[:k].masked_select(x[:k] > 0)", "x[:k].nonzero()", "torch.unique(x[:k])", "torch.unique_consecutive(x[:k, 0])", "torch.msort(x[:k])", "F.scaled_dot_product_attention(x[None, None], x[None, None, :k], x[None, None, :k])",
        "x[:k].to(torch.int32).amax(0)", "x[:k].long().max()", "(x[:k] > 0).any()", "(x[:k] > 0).all(0)", "(x[:k] > 0).long().argmax(0)", "x[:k].bfloat16().amax(0)",
    ]:
        program(t, K + text, {"x": x, "i": scalar(3)}, [], {"i": scalar(0)}, {"i": scalar(1)}, {"i": scalar(8)}, dynamic=["x"])
    for text in [
        "F.embedding_bag(c % 8, x, i, mode='sum')", "F.embedding_bag(c % 8, x, i, mode='mean')", "F.embedding_bag(c % 8, x, i, mode='max')",
        "F.embedding_bag(c % 8, x, i, mode='sum', include_last_offset=True)",
    ]:
        sets = [{"i": scalar(w)} for w in ([0, 5, 5], [0, 0, 0], [0, 8, 8], [1, 3, 4], [0, 9, 9], [0, 3, 9], [0, -1, 3], [0, 3, -1], [0, 3, HUGE], [-HUGE, 0, 0])]
        program(t, text, {"c": torch.arange(8), "x": x, "i": scalar([0, 3, 8])}, sets)


def indices(t):
    """Indices and counts that other computations gave."""
    x = t.x
    z = torch.tensor([0.0, 1.0, 0.0, -2.0, 0.0, 3.0])
    for text in [
        "r = x.nonzero().squeeze(1); x[r] * 2",
        "r = (x > 0).nonzero().squeeze(1); x.index_fill(0, r, 5.0)",
        "r = x[x != 0]; r.cumsum(0) + r.shape[0]",
        "r = x[x > 0]; torch.cat([r, x]).flip(0)",
        "r = torch.unique(x); torch.searchsorted(r, x)",
        "u, inv, c = torch.unique(x, return_inverse=True, return_counts=True); u[inv] * c[inv]",
        "r = x.nonzero(); torch.zeros(r.shape[0], 2) + r",
        "y = x.clone(); y[x > 0] = 7; y[x < 0] *= 2; y",
        "torch.masked_select(x, x > 0).sum() / (x > 0).sum()",
        "x.masked_scatter(x > 0, x * 2)",
        "r = x[x > 0]; r.unsqueeze(0) * r.unsqueeze(1)",
        "r = x[x > 0]; F.pad(r, (1, r.shape[0])).sum()",
        "r = torch.argwhere(x).flatten(); s = torch.argwhere(x > 0).flatten(); torch.cat([r, s])",
        "r = x[x != 0]; s = r[r > 0]; s * s.shape[0] + r.shape[0]",
        "r = torch.repeat_interleave(x.abs().long()); torch._check(r.shape[0] <= 40); r * 2",
        "r = x.repeat_interleave(x.abs().long()); torch._check(r.shape[0] <= 40); r.sum() + r.shape[0]",
        "k = (x > 0).sum().item(); torch._check(k >= 0); torch._check(k <= x.shape[0]); x[:k] * 2",
    ]:
        program(t, text, {"x": z}, [], {"x": torch.zeros(6)}, {"x": torch.ones(6)}, {"x": torch.arange(6.0) - 2})
    wrong = [[-1, 0], [8, 0], [0, HUGE], [0, -HUGE], [EDGE - 1, -EDGE]]
    for text in [
        "x.index_select(0, c) + 1",
        "x.scatter(0, c.unsqueeze(1), 5.0)",
        "x.index_copy(0, c, x[:2])",
        "x.gather(0, c.unsqueeze(1).expand(2, 3))",
        "x.index_add(0, c, x[:2])",
        "x.scatter_reduce(0, c.unsqueeze(1).expand(2, 3), x[:2], 'amax')",
        "F.embedding(c, x)",
    ]:
        program(t, text, {"x": x, "c": scalar([5, 1])}, [{"c": scalar(w)} for w in wrong], dynamic=["x"])
    for text in ["x[c] + 1", "y = x.clone(); y[c] = 5; y", "y = x.clone(); y.index_put_((c,), x[:2], accumulate=True); y"]:
        program(t, text, {"x": x, "c": scalar([5, 1])}, [{"c": scalar(w)} for w in [[-9, 0], [8, 0], [0, HUGE], [EDGE - 1, -EDGE]]],
               {"c": scalar([-8, -1])}, dynamic=["x"])
    for text in [
        "F.embedding_bag(torch.arange(8) % 8, x, c, mode='sum')",
    ]:
        program(t, text, {"x": x, "c": scalar([0, 3])}, [{"c": scalar(w)} for w in [[1, 3], [0, 9], [0, -1], [0, HUGE]]])


def loops(t):
    """Loops and branches whose counts, bounds and starts are data."""
    x = t.x
    bad = [{"i": scalar(k)} for k in BAD]
    one = {"x": x, "i": scalar(3)}
    for text in [
        K + "LOOP(lambda n, y: n < k, lambda n, y: (n + 1, y + x[:3].sum()), (torch.tensor(0), x * 1))[1]",
        K + "LOOP(lambda n, y: (n < 3) & (k > 1), lambda n, y: (n + 1, y * 2), (torch.tensor(0), x[:k] * 1))[1].sum(0)",
        K + "torch.cond(k > 2, lambda y: y * 2, lambda y: y + 1, (x[:k] * 1,))",
        K + "torch.cond(k * 2 > x.shape[0], lambda y: y.sum(0), lambda y: y.amax(0), (x,))",
        K + "torch.cond(k % 2 == 0, lambda y: y[:, 0] * 1, lambda y: y[:, 1] * 1, (x,))",
        K + "x * torch.sym_ite(k > 4, k, 7) + torch.sym_min(k, x.shape[0] - 2) - torch.sym_max(k, 2)",
        K + "x * torch.sym_sqrt(k + 1) + torch.sym_float(k) / 3",
        K + "x[: torch.sym_min(k, 4)] * 2",
        K + "x[torch.sym_max(k - 2, 0):] * 2",
        K + "x.new_full((k,), torch.sym_sqrt(k)).sum()",
        K + "n = torch.sym_min(k, x.shape[0] // 2); torch.cat([x[:n], x[n:]])",
    ]:
        program(t, text, one, bad, {"i": scalar(0)}, {"i": scalar(8)}, dynamic=["x"])
    count = "LOOP(lambda n, y: n < i, lambda n, y: (n + 1, y * 1.5), (torch.tensor(0), x * 1))[1]"
    program(t, count, one, [], {"i": scalar(0)}, {"i": scalar(-5)}, {"i": scalar(20)})
    at = "LOOP(lambda n, y: n < i, lambda n, y: (n + 1, y.index_fill(0, n.reshape(1), 2.0)), (torch.tensor(0), x * 1))[1]"
    program(t, at, one, [{"i": scalar(9)}, {"i": scalar(HUGE)}], {"i": scalar(8)}, {"i": scalar(0)}, dynamic=["x"])
    at = "LOOP(lambda n, y: n < 3, lambda n, y: (n + 1, y.index_fill(0, i.reshape(1) + n, 2.0)), (torch.tensor(0), x * 1))[1]"
    program(t, at, one, [{"i": scalar(k)} for k in (6, -1, 8, HUGE, EDGE - 1, -EDGE)], {"i": scalar(5)}, {"i": scalar(0)}, dynamic=["x"])
    g = "g = lambda x, i: (lambda k: (torch._check(k >= 0), torch._check(k <= x.shape[0]), x[k:].sum(0))[2])(i.item()); "
    program(t, g + "torch.cond(p, g, lambda x, i: x.sum(0), (x, i))", {**one, "p": scalar(True, torch.bool)}, bad,
           {"i": scalar(99), "p": scalar(False, torch.bool)}, {"i": scalar(8)})
    nested = "g = lambda x, i: torch.cond(i > 4, lambda x, i: x.index_select(0, i.reshape(1)).sum(0), lambda x, i: x.sum(0), (x, i)); "
    program(t, nested + "torch.cond(p, g, lambda x, i: x.amax(0), (x, i))", {"x": x, "i": scalar(6), "p": scalar(True, torch.bool)},
           [{"i": scalar(8)}, {"i": scalar(HUGE)}], {"i": scalar(-HUGE)}, {"i": scalar(HUGE), "p": scalar(False, torch.bool)}, dynamic=["x"])


def numbers(t):
    """Numbers that Python itself refuses to compute, that an element type does not have, and sizes that are made of them."""
    x = t.x
    nan, inf = float("nan"), float("inf")
    values = [-1.0, 0.0, -0.0, 0.5, 1.5, 3.0, 1e10, 1e300, -1e300, nan, inf, -inf]
    others = [{"f": scalar(v, torch.float64)} for v in values]
    given = {"x": x, "f": scalar(2.25, torch.float64)}
    for text in [
        "x * v ** 2", "x * v ** -1", "x * 2.0 ** v", "x + torch.sym_sqrt(v)", "x * torch.sym_int(v)",
        "torch.full((3,), v)", "torch.full((3,), v, dtype=torch.int64)", "torch.full((3,), v, dtype=torch.int32)",
        "torch.full((3,), v, dtype=torch.float16)", "torch.scalar_tensor(v) + x", "x.masked_fill(x > 0, v)", "x.clamp(max=v)",
        "x.half().clamp(min=v)", "torch.where(x > 0, v, x)", "x.add(x, alpha=v)", "torch.addcmul(x, x, x, value=v)",
        "x.lerp(x + 1, v)", "F.threshold(x, 0.5, v)", "F.elu(x, v)", "F.celu(x, v)", "F.leaky_relu(x, v)", "F.softplus(x, v)",
        "F.hardshrink(x, v)", "x.renorm(2, 0, v)",
        "k = torch.sym_int(v * 2); torch._check(k >= 0); torch._check(k <= 8); x[:k] * 2",
        "k = torch.sym_int(v * 2); torch._check(k >= 0); torch._check(k <= x.shape[0]); x[k:].sum(0)",
    ]:
        program(t, "v = f.item(); " + text, given, others, dynamic=["x"])
    one = {"x": x, "i": scalar(3)}
    others = [{"i": scalar(k)} for k in (-HUGE, -2, 0, 1, 7, 8, 9, 40, 61, 62, 64, HUGE, EDGE - 1, -EDGE)]
    for text in ["x * (1 << k)", "x * (k << 3)", "x * (k >> 2)", "torch.tensor([k, 2]) + 1"]:
        program(t, "k = i.item(); " + text, one, others)
    for text in ["F.pad(x.t()[None], (k, 0), mode='reflect') + 1", "F.pad(x.t()[None], (0, k), mode='reflect').sum(2)"]:
        program(t, K + text, one, others, {"x": x[:2], "i": scalar(1)}, dynamic=["x"])


def fill(t):
    t.x = t.rand(8, 3, dtype=torch.float32)
    for part in (strides, more, indices, loops, empties, numbers):
        part(t)


FAMILIES = {"extents": (["f32"], fill)}
