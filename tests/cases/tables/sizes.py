"""Programs whose sizes are known at run time only, run at several, and programs with branches and loops."""

import torch


def dynamic(t):
    """Each axis of seven elements here is of any size from 1 on."""
    t.dynamic, t.sizes = 7, (1, 2, 7, 37)
    t.bind(
        x=t.rand(7, 5),
        y=t.rand(3, 7),
        s=t.rand(7, 7),
        w=t.rand(5, 4),
        v=t.rand(7),
        img=t.rand(1, 3, 7, 7),
        k=t.rand(4, 3, 3, 3, low=-1, high=1),
        i=t.ints(0, 1, 7),
        q=t.rand(2, 2, 7, 8),
        e=t.rand(6, 5),
    )
    t(
        "x + 1, x * x[:1], x + v[:, None], x.sum(0), x.sum(1), x.mean(), x.t() @ x, x @ w, y @ x",
        "s + v, s @ x, s.t() @ s, s.softmax(1), s.cumsum(0), s.tril(), s.triu(1), s.diagonal()",
        "torch.cat([x, x]), torch.cat([x, x[:1], x]), torch.stack([v, v], 1), x.repeat(2, 1), x.flip(0), x.roll(1, 0)",
        "x.reshape(-1), x.view(5, -1), x.unsqueeze(1).expand(-1, 3, -1), y.permute(1, 0), x.flatten(), s.view(-1), s.reshape(1, -1, 1)",
        "x[1:], x[:-1], x[::2], x[-1], v[x.shape[0] // 2], x[: x.shape[0] // 2], x[x.shape[0] // 2:], v.narrow(0, 0, v.shape[0] - 0)",
        "F.pad(v, (1, 2)), F.pad(x, (0, 0, 1, 1), value=2)",
        "v.amax(), v.argmax(), v.sort(stable=True), v.std(correction=0), s.var(0, correction=0), torch.linalg.vector_norm(s, dim=1), v.prod(), (v > 0).any(), v.logsumexp(0)",
        "torch.arange(x.shape[0]) + 1, torch.ones(x.shape[0], 2), torch.full((x.shape[0],), x.shape[0]), torch.arange(x.shape[0] * 2, device=x.device), x * x.shape[0], x / v.numel()",
        "F.conv2d(img, k, None, 1, 1), F.conv2d(img, k, None, 2, 1), F.relu(F.conv2d(img, k, padding=1)).mean((2, 3))",
        "F.max_pool2d(F.pad(img, (1, 1, 1, 1)), 3, 1), F.avg_pool2d(img, 1), F.adaptive_avg_pool2d(img, 1), F.interpolate(img, scale_factor=2, mode='nearest'), F.interpolate(img, (4, 5), mode='bilinear'), F.interpolate(img, scale_factor=2., mode='bilinear', align_corners=True)",
        "e[i], F.embedding(i, e), e.index_select(0, i), x.gather(0, i[:, None].expand(-1, 5)), torch.zeros(6, 5).index_add(0, i, x), torch.zeros(6).scatter_add(0, i, v), F.one_hot(i, 3)",
        "F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, is_causal=True)",
        "F.layer_norm(x, (5,)), F.batch_norm(x, x.mean(0), x.var(0, correction=0) + 1), F.normalize(x, dim=0), F.cross_entropy(s, i), F.mse_loss(x, x * 2)",
        "y = x.clone(); y[0] = 1; y[1:] += 1; y",
        "y = s.clone(); y[:, 0].add_(v); y.diagonal().zero_(); y",
        "torch.meshgrid(v, v, indexing='ij'), torch.outer(v, v), torch.kron(v, v[:1]), torch.cdist(x, x), torch.einsum('ij,kj->ik', x, x)",
        "v.unfold(0, 1, 1), x.split([1, x.shape[0] - 1])[1], torch.chunk(x, 1)[0], x.unbind(1)[2]",
        "v.median(), v.kthvalue(1).values, v.topk(1).values, torch.searchsorted(v.sort().values, v), torch.bucketize(v, e[0].sort().values)",
        "v.diff(), v.cummax(0), torch.where(v > 0, v, 0), torch.nonzero(v > 0), v[v > 0]",
        "torch.linspace(0, 1, 5) + v[:1], v.clamp(-1, 1), v.view(-1, 1) * v, x.new_zeros(x.shape), torch.zeros_like(x)",
        "F.interpolate(img, (4, 5), mode='bilinear', antialias=True), F.interpolate(img, (9, 3), mode='bicubic', antialias=True), F.interpolate(img, (3, 4), mode='bicubic', align_corners=True, antialias=True)",
        "F.interpolate(k[:, :, :, :2], (x.shape[0], x.shape[0] // 2 + 1), mode='bicubic', antialias=True), F.interpolate(k, (x.shape[0], 2), mode='bilinear', align_corners=True, antialias=True)",
        "F.interpolate(img, scale_factor=1.1, mode='bilinear', antialias=True), F.interpolate(img, scale_factor=1.2, mode='bilinear'), F.interpolate(img, scale_factor=(1.3, 2.0))",
        "torch.arange(v.shape[0], -2, -1.0), torch.arange(0.0, v.shape[0]), torch.arange(1, 2 * v.shape[0] + 1, 2.0, dtype=torch.float64)",
        "k = torch.tensor(min(v.shape[0], 3)); e[3 - k : 3 + k]",
        "torch.rot90(s), v.tile(3), v.repeat_interleave(2), F.pixel_shuffle(img.expand(1, 3, -1, -1).repeat(1, 4, 1, 1), 2)",
    )


def control(t):
    t.bind(
        x=t.rand(3, 5),
        y=t.rand(3, 5),
        yes=torch.tensor(True),
        no=torch.tensor(False),
        n=torch.tensor(4),
        zero=torch.tensor(0),
        s=t.rand(),
        w=t.rand(5, 5, low=-0.5, high=0.5),
    )
    for p in ("yes", "no", "x.sum() > y.sum()"):
        t(
            f"torch.cond({p}, lambda x: x + 1, lambda x: x * 2, (x,))",
            f"torch.cond({p}, lambda x, y: (x @ w, x.sum()), lambda x, y: (y @ w.t(), y.amax()), (x, y))",
            f"torch.cond({p}, lambda x, y: torch.cond(x.sum() > 0, lambda x, y: x - y, lambda x, y: x + y, (x, y)), lambda x, y: x.sin() * y, (x, y))",
            f"a = x * 2; torch.cond({p}, lambda a: a.softmax(1), lambda a: a.relu() + 1, (a,)) + x",
        )
    for n in ("n", "zero"):
        t(
            f"LOOP(lambda i, x: i < {n}, lambda i, x: (i + 1, x + 0.5), (zero, x))",
            f"LOOP(lambda i, x, s: i < {n}, lambda i, x, s: (i + 1, torch.tanh(x @ w), s + x.sum()), (zero, x, s))",
            f"LOOP(lambda i, x: i < {n}, lambda i, x: (i + 1, torch.cond(x.sum() > 0, lambda x: x - 1, lambda x: x * 2, (x,))), (zero, x))",
            f"LOOP(lambda i, x: i < {n}, lambda i, x: (i + 1, LOOP(lambda j, x: j < i, lambda j, x: (j + 1, x * 0.5 + 1), (i * 0, x))[1]), (zero, x))",
        )
    t(
        "SCAN(lambda c, r: (c + r, c * r), s.expand(5) * 1, x)",
        "SCAN(lambda c, r: (torch.tanh(c @ w + r), (c.sum(), c * 2)), y[0] * 1, x)",
        "SCAN(lambda c, r: ([c[0] + r[0], c[1] * r[1]], c[0] - c[1]), [s * 1, s + 1], [x.t()[0] * 1, y.t()[0] * 1], reverse=True)",
        "SCAN(lambda c, r: (c + r, c * r), x[:, 0] * 1, y, dim=1)[1]",
        "JOINED(lambda a, b: a * b, x, dim=0, combine_mode='pointwise')",
        "JOINED(lambda a, b: [a[0] * b[0], b[0] * a[1] + b[1]], [x, y], dim=1, combine_mode='pointwise')",
        "JOINED(lambda a, b: torch.maximum(a, b), x, dim=1, reverse=True, combine_mode='pointwise')",
        "MAP(lambda r: (r * 2, r.sum()), x)",
        "MAP(lambda r, w, n: (torch.tanh(r[0] @ w) + n.float(), r[1].amax()), (x, y), w, n)",
    )
    t(
        "torch.vmap(lambda a, b: (a * b).sum())(x, y)",
        "torch.vmap(lambda a: torch.outer(a, a) @ w, in_dims=0, out_dims=1)(x)",
        "torch.vmap(lambda a, b: a.softmax(0) + b, in_dims=(1, None))(x, s)",
        "torch.vmap(lambda a, b: (a.cumsum(0), b.amax() * a.shape[0]), in_dims=(1, 0), out_dims=(-1, 0))(y, w)",
        "torch.vmap(torch.vmap(lambda a, b: torch.sin(a) * b, in_dims=(0, None)))(x, y[:, 0])",
        "torch.vmap(lambda i: y[0] * i + n)(x.sum(1))",
    )
    t("torch.sym_max(x.shape[0], 2) + x, torch.sym_ite(x.shape[0] > 2, 1, 2) * y")


def autocast(t):
    """Regions where products are computed in a half type."""
    r = lambda *sizes: t.rand(*sizes, low=-1, high=1)
    t.bind(x=r(3, 5), w=r(5, 4), l=r(4, 5), b=r(4), img=r(1, 3, 6, 7), k=r(4, 3, 3, 3), q=r(1, 2, 5, 8))
    for dtype in ("bf16", "f16"):
        with_ = f"with torch.autocast('cpu', {dtype}): "
        t(
            f"{with_}a = x @ w; a, a.float() + 1",
            f"{with_}a = F.linear(x, l, b); a",
            f"{with_}a = F.relu(F.conv2d(img, k)).mean((2, 3)); a",
            f"{with_}a = F.softmax(x @ w, -1); a",
            f"{with_}a = (x + 1) * 2; a",
            f"{with_}a = F.layer_norm(x @ w, (4,)) @ w.t(); a",
            f"{with_}a = F.scaled_dot_product_attention(q, q, q); a",
            f"{with_}a = F.mse_loss(x @ w, b.expand(3, 4)); a",
            f"{with_}a = torch.cat([x @ w, x[:, :4]]); a",
            f"{with_}a = torch.bmm(q[0], q[0].mT).exp().sum(-1); a",
        )


FAMILIES = {
    "dynamic": (("f32", "i64", "bf16"), dynamic),
    "control": (("f32",), control),
    "autocast": (("f32",), autocast),
}
