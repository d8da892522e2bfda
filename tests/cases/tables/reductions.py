"""Reductions, scans, and what orders elements."""

import torch

ALL = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")
SOME = ("f32", "f64", "bf16", "f16", "i64", "u8", "bool")

REDUCTIONS = (
    ["sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "any", "all", "std", "var", "logsumexp", "median", "nanmedian", "mode", "nansum", "nanmean"]
)
NORMS = ("0", "1", "2", "3", "0.5", "float('inf')", "-float('inf')", "-2", "'fro'")


def reductions(t):
    span = 2.0 if t.is_float else 3
    t.bind(
        x=t.rand(3, 5, 7, low=-span, high=span),
        line=t.rand(131),
        one=t.rand(1, 1),
        s=t.rand(),
        z=t.rand(0, 3),
        zz=t.rand(2, 0, 3),
        e=t.special(),
        m=t.rand(9, 37),
    )
    for name in REDUCTIONS:
        t(f"torch.{name}(x)", f"torch.{name}(s)", f"torch.{name}(z)", f"torch.{name}(e)", f"torch.{name}(one)")
        t(f"torch.{name}(x, 1), torch.{name}(x, -1, keepdim=True)", f"torch.{name}(x, dim=0)")
        t(
            f"torch.{name}(x, (0, 2)), torch.{name}(x, (-1, 1), keepdim=True)",
            f"torch.{name}(one, 0), torch.{name}(one, 1, keepdim=True)",
        )
        t(
            f"torch.{name}(z, 0)",
            f"torch.{name}(z, 1)",
            f"torch.{name}(zz, 1)",
            f"torch.{name}(zz, (0, 2))",
            f"torch.{name}(s, 0)",
        )
        t(f"torch.{name}(x.transpose(0, 2), 1), torch.{name}(x[:, ::2, 1:-1], 1)")
        # Of many equal elements, PyTorch's `mode` and medians give the index of any.
        values = "[0]" if name in ("median", "nanmedian", "mode") else ""
        # It multiplies in f16, each step rounded.
        if name != "prod" or t.type not in ("f16", "bf16"):
            t(f"torch.{name}(m, dim=1){values}", f"torch.{name}(m.t()[::2], 0){values}")
    t(
        "torch.sum(x, dtype=f64), torch.mean(x, dtype=f32), torch.prod(x, 1, dtype=f32), torch.sum(x, [])",
        "torch.max(x), torch.min(x)",
        "torch.max(x, 1), torch.min(x, -1, keepdim=True)",
        "torch.max(e, 0), torch.min(e, 0)",
        "torch.aminmax(x), torch.aminmax(x, dim=1, keepdim=True)",
        "torch.aminmax(e)",
        "torch.count_nonzero(x), torch.count_nonzero(x, dim=(0, 2))",
        "torch.argmax(x.flatten() * 0), torch.argmin(torch.zeros_like(x), 1)",
        "torch.argmax(x, 1, keepdim=True), torch.argmax(e, 0)",
        "torch.var(x, 1, correction=0), torch.std(x, (0, 1), correction=2, keepdim=True), torch.var_mean(x, 1), torch.std_mean(x)",
        "torch.var(one), torch.var(x, unbiased=False), torch.std(line)",
        "torch.quantile(x, 0.3), torch.quantile(x, 0.5, dim=1)",
        "torch.quantile(x, torch.tensor([0.1, 0.9], dtype=x.dtype), dim=1, keepdim=True)",
        "torch.nanquantile(x, 0.25, dim=2, interpolation='nearest')",
        "torch.quantile(x, 0.4, dim=0, interpolation='lower'), torch.quantile(x, 0.4, dim=0, interpolation='higher'), torch.quantile(x, 0.4, dim=0, interpolation='midpoint')",
        "torch.logsumexp(x, (0, 1)), torch.logsumexp(e, 0)",
        "torch.trace(m)",
        "torch.linalg.vecdot(m, m)",
        "torch.nansum(e), torch.nansum(x, 1), torch.nanmean(e.clamp(-5, 5))",
        "x.sum_to_size(1, 5, 1)",
        "torch.allclose(x, x)",
        "torch.histc(x, 5, -2, 2)",
        "torch.cov(m[:4]), torch.corrcoef(m[:4])",
        "torch.norm(m), torch.renorm(m, 2, 0, 1.5)",
    )
    for order in NORMS:
        t(
            f"torch.linalg.vector_norm(x, {order}), torch.linalg.vector_norm(x, {order}, dim=1)",
            f"torch.norm(x, {order}, dim=-1, keepdim=True)",
        )
    t(
        "torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, 1), torch.linalg.matrix_norm(x, float('inf')), torch.linalg.norm(m)"
    )


def scans(t):
    t.bind(
        x=t.rand(3, 5, 7, low=-2, high=2),
        line=t.rand(131, low=-1, high=1),
        one=t.rand(1),
        s=t.rand(),
        z=t.rand(0, 3),
        e=t.special(),
    )
    for name in ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]:
        t(
            f"torch.{name}(x, 0)",
            f"torch.{name}(x, 1), torch.{name}(x, -1)",
            f"torch.{name}(line, 0)",
            f"torch.{name}(one, 0)",
            f"torch.{name}(s, 0)",
            f"torch.{name}(z, 0), torch.{name}(z, 1)",
            f"torch.{name}(e, 0)",
            f"torch.{name}(x.transpose(0, 2), 1)",
            f"torch.{name}(x[:, ::2], 1), torch.{name}(x.flip(1), 1)",
        )
    t(
        "torch.cumsum(x, 1, dtype=f64), torch.cumprod(x, 2, dtype=f32)",
        "torch.diff(x), torch.diff(x, n=2, dim=1), torch.diff(x, dim=0, prepend=x[:1])",
        "torch.trapezoid(x), torch.trapezoid(x, dx=0.5, dim=0)",
        "torch.cumulative_trapezoid(x, dim=1)",
        "torch.gradient(line), torch.gradient(x, dim=1)",
        "torch.diff(one), torch.diff(line[::7])",
        "torch.trapezoid(x, x.cumsum(-1))",
        "torch.cummax(x > 0, 1)",
        "torch.cumsum(x > 0, 1)",
    )


def ordering(t):
    t.bind(
        x=t.rand(3, 9, 5),
        line=t.rand(131),
        one=t.rand(1),
        s=t.rand(),
        z=t.rand(0, 3),
        e=t.special(),
        table=t.rand(3, 7).sort(1).values,
        values=t.rand(3, 4),
        edges=t.rand(6).sort().values,
        few=t.rand(20, 3, low=0, high=2).round() if t.is_float else t.rand(20, 3, low=0, high=2),
        block=t.rand(2, 9, 2, low=0, high=2).round() if t.is_float else t.rand(2, 9, 2, low=0, high=2),
    )
    # Where PyTorch leaves the order of equal elements open, only the values are asked for.
    t(
        "torch.sort(x, stable=True), torch.sort(x, 1, stable=True), torch.sort(x, 0, descending=True, stable=True)",
        "torch.sort(x, dim=1).values",
        "torch.sort(line, stable=True)",
        "torch.sort(one, stable=True), torch.sort(s, stable=True)",
        "torch.sort(z, 0, stable=True), torch.sort(z, 1, stable=True)",
        "torch.sort(e, stable=True), torch.sort(e, descending=True, stable=True)",
        "torch.argsort(x, 1, stable=True), torch.argsort(x, -1, descending=True, stable=True)",
        "torch.msort(x)",
        "torch.sort(x.transpose(1, 2)[..., ::2], stable=True)",
        "torch.topk(x, 3, dim=1).values, torch.topk(x, 2, largest=False).values",
        "torch.topk(line, 131).values, torch.topk(line, 1).values, torch.topk(one, 1)",
        "torch.topk(x, 0, dim=1), torch.topk(s, 1)",
        "torch.topk(e, 5).values, torch.topk(e, 5, largest=False).values",
        "torch.kthvalue(x, 2, dim=1), torch.kthvalue(x, 1), torch.kthvalue(line, 131), torch.kthvalue(line, 40)",
        "torch.kthvalue(x, 3, 0, keepdim=True), torch.kthvalue(s, 1), torch.kthvalue(e, 2), torch.kthvalue(e, e.numel() - 1)",
        "torch.kthvalue(few, 9, 0), torch.kthvalue(few, 20, 0), torch.kthvalue(block, 3, 1, keepdim=True), torch.kthvalue(block, 2)",
        "torch.median(x), torch.median(x, 1).values, torch.median(x, -1, keepdim=True).values",
        "torch.nanmedian(x, 1).values, torch.nanmedian(e), torch.median(e)",
        "torch.mode(x, 1), torch.mode(x, 0, keepdim=True), torch.mode(line * 0 + 1), torch.mode(torch.cat([line, line, line * 2]))",
        "torch.mode(e), torch.mode(torch.cat([e, e])), torch.mode(torch.cat([e, e.flip(0), e])), torch.mode(e.repeat(7).view(7, -1), 0)",
        "torch.unique_consecutive(line)",
        "torch.searchsorted(table, values), torch.searchsorted(table, values, right=True), torch.searchsorted(table, values, side='left')",
        "torch.searchsorted(edges, x), torch.searchsorted(edges, 1.5), torch.searchsorted(edges, values, out_int32=True)",
        "torch.bucketize(x, edges), torch.bucketize(x, edges, right=True)",
        "torch.bucketize(e, edges), torch.bucketize(2, edges)",
        "torch.searchsorted(table[:, :0], values), torch.searchsorted(table, values[:, :0])",
        "torch.searchsorted(edges.flip(0), values, sorter=torch.arange(5, -1, -1))",
        "torch.isin(x, edges)",
        "torch.unique(line), torch.unique(x, return_inverse=True, return_counts=True), torch.unique(z)",
        "torch.unique(e, return_counts=True)",
        "torch.unique_consecutive(x, return_inverse=True, return_counts=True)",
        "torch.unique_consecutive(line, dim=0)",
        "torch.unique(few, dim=0, return_inverse=True, return_counts=True)",
        "torch.unique(few, dim=1)",
        "torch.unique(block, dim=1, return_inverse=True, return_counts=True)",
        "torch.unique(few[:0], dim=0), torch.unique(few[:1], dim=-1, return_counts=True)",
        "torch.unique_consecutive(few, dim=0, return_inverse=True, return_counts=True)",
        "torch.unique_consecutive(block, dim=2)",
        "torch.take_along_dim(x, torch.argsort(x, 1, stable=True), 1)",
    )


def histograms(t):
    t.bind(x=t.rand(6, 7, low=-3, high=3), w=t.rand(6, 7, low=0, high=2), one=torch.full((4,), 2.0, dtype=t.dtype), none=t.rand(0), p=t.rand(6, 5, 3))
    t.bind(edges=torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.5], dtype=t.dtype), n=torch.tensor([0.5, float("nan"), 0.25], dtype=t.dtype))
    t(
        "torch.histogram(x, 5)", "torch.histogram(x, 4, range=(-1.03, 2.17))", "torch.histogram(x, 7, weight=w)",
        "torch.histogram(x, 6, range=(-2.03, 2.17), weight=w, density=True)", "torch.histogram(x, 3, density=True)",
        "torch.histogram(one, 3)", "torch.histogram(x, 4, range=(1.0, 1.0))", "torch.histogram(none, 3)",
        "torch.histogram(x, edges)", "torch.histogram(x, edges, weight=w, density=True)", "torch.histogram(n, 4, range=(0.0, 1.0))",
        "torch.histogramdd(p, [4, 3, 2])", "torch.histogramdd(p, 3, weight=w[:, :5])", "torch.histogramdd(p[0], [2, 4, 3], range=[-1.03, 1.0, -2.1, 2.0, 0.1, 0.9])",
        "torch.histogramdd(p, (edges, edges, edges[1:4]))", "torch.histogramdd(p, [2, 2, 5], weight=w[:, :5], density=True)", "torch.histogramdd(x, 2)",
    )


def segments(t):
    x = t.rand(7, 3, low=-2, high=2)
    lengths = torch.tensor([2, 0, 4, 1])
    t.bind(x=x, e=t.special(), l=lengths, o=torch.tensor([0, 2, 2, 6, 7]), k=lengths.int(), z=t.rand(0, 3))
    t.bind(m=t.rand(2, 6, 3, low=-2, high=2), n=torch.tensor([[2, 4, 0], [0, 1, 5]]), p=torch.tensor([[0, 2, 6], [1, 1, 4]]))
    for name in ("sum", "mean", "max", "min", "prod"):
        call = lambda given: f"torch.segment_reduce({given.replace('OP', repr(name))})"
        t(
            f"{call('x, OP, lengths=l')}, {call('x, OP, offsets=o')}, {call('x, OP, lengths=l, initial=0.5')}",
            f"{call('x[:, 0], OP, lengths=k')}, {call('x[::2], OP, lengths=l[:2] * 2')}, {call('x, OP, offsets=o[1:4]')}",
            f"{call('m, OP, lengths=n, axis=1')}, {call('m, OP, offsets=p, axis=1')}, {call('m, OP, lengths=n[:, :2], axis=1, unsafe=True, initial=3')}",
            f"{call('e, OP, offsets=torch.tensor([0, 2, 3, 5])')}, {call('z, OP, lengths=l * 0')}",
            f"{call('e, OP, offsets=torch.tensor([0, 2, 3]), initial=math.nan')}, {call('x, OP, lengths=l, offsets=o - o % 2')}",
        )
    good, bad = torch.tensor([3, 0, 4]), [{"l": torch.tensor(own)} for own in ([3, 0, 3], [3, -1, 5], [4, 0, 4])]
    t.data("torch.segment_reduce(x, 'mean', lengths=l)", {"x": x, "l": good}, bad, {"l": torch.tensor([0, 7, 0])})
    bad = [{"o": torch.tensor(own)} for own in ([0, 5, 3, 7], [5, 0, 0, 1])]
    good = torch.tensor([0, 2, 2, 7])
    t.data("torch.segment_reduce(x, 'max', offsets=o)", {"x": x, "o": good}, bad, {"o": torch.tensor([1, 2, 3, 3])}, dynamic=("x",))


FAMILIES = {"segments": (("f32", "f64", "f16", "bf16"), segments), "histograms": (("f32", "f64"), histograms), "reductions": (ALL, reductions), "scans": (SOME, scans), "ordering": (SOME, ordering)}
