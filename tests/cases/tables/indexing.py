"""Elements by index, views, mutation through views, and what makes tensors."""

import torch

from elements import TYPES

ALL = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")
SOME = ("f32", "i64", "bf16", "bool", "u8", "f64")


def indexing(t):
    t.bind(
        x=t.rand(5, 7),
        y=t.rand(3, 4, 5),
        i=t.ints(0, 5, 6),
        j=t.ints(-7, 7, 6),
        g=t.ints(0, 5, 3, 7),
        w=t.ints(0, 5, 3, 2, 5) % 4,
        v=t.rand(6, 7),
        u=t.rand(3, 7),
        s=t.rand(),
        m=t.rand(5, 7, dtype=TYPES["bool"]),
        none=t.ints(0, 1, 0),
        k=t.ints(0, 35, 11),
        perm=torch.tensor([3, 0, 4, 1, 2]),
        b=t.ints(0, 5, 4, dtype=TYPES["i32"]),
    )
    t(
        "torch.gather(x, 0, g), torch.gather(y, 1, w), torch.gather(x, 0, g[:0])",
        "torch.take(x, k), torch.take(x, k - 35), torch.take_along_dim(x, g[:, :1], 0)",
        "torch.index_select(x, 0, i), torch.index_select(x, 1, none), torch.index_select(y, -1, b), torch.index_select(s, 0, none[:0].new_zeros(1))",
        "x[i], x[:, j], x[i - 5, j], x[i[:, None], j], x[None, i, ..., None], x[b.long()]",
        "y[:, i % 4], y[i % 3, :, i - 5], y[:, :, i], y[i % 3, i % 4]",
        "x[none], x[:, none], y[none, :, none]",
        "x[perm % 2 == 0], x[m]",
        "x[2], x[-1, -2], x[..., 3], x[1:4:2, ::3], x[:, -3:], x[5:], x[:, None]",
        "torch.masked_fill(x, m, 3), torch.masked_fill(x, m, s), torch.where(m, x, 0)",
        "torch.masked_select(x, m)",
        "torch.nonzero(x), torch.argwhere(m)",
        "torch.nonzero(m, as_tuple=True)",
        "torch.index_add(x, 0, i, v), torch.index_add(x, 0, i, v, alpha=2), torch.index_add(x, 0, b.long(), v[:4])",
        "torch.index_copy(x, 0, perm, x.flip(0))",
        "torch.index_fill(x, 1, i, 3), torch.index_fill(x, 0, i, s), torch.index_fill(x, 0, none, 1)",
        "torch.scatter(x, 0, torch.zeros_like(g[:1]), u), torch.scatter(x, 0, torch.arange(3)[:, None].expand(3, 7), u), torch.scatter(x, 1, g[:, :1], 5)",
        "torch.scatter_add(x, 0, g, u), torch.scatter_add(x, 0, g[:0], u)",
        "torch.scatter(x, 0, g, u, reduce='add'), torch.scatter(x, 0, g, 2, reduce='multiply')",
        "torch.put(x, perm * 6 - 3, x.flatten()[:5])",
        "torch.put(x, k, x.flatten()[:11], accumulate=True)",
        "torch.put(x, k - 35, x.flatten()[:11], accumulate=True)",
        "torch.index_put(x, (perm,), x.flip(0)), torch.index_put(x, (i, j), v[:, 0], accumulate=True), torch.index_put(x, (i - 5,), v, accumulate=True)",
        "torch.index_put(x, (m,), s), torch.index_put(y, (perm[:3] % 3, perm[:3] % 4), s), torch.index_put(x, (none,), v[:0])",
        "torch.masked_scatter(x, m, x.flip(0))",
        "torch.slice_scatter(x, u, 0, 1, 4), torch.slice_scatter(x, x[:, :2], 1, -4, 7, 2), torch.select_scatter(x, v[0], 0, -1)",
        "torch.diagonal_scatter(x, v[0, :5]), torch.diagonal_scatter(x, v[0, :4], -1)",
        "torch.as_strided_scatter(x, v[0, :4], (2, 2), (7, 2), 1)",
        "F.one_hot(i, 7), F.one_hot(g % 3)",
        "torch.tensor_split(x, 3), torch.tensor_split(x, (1, 3), 1), torch.chunk(x, 3, 1), torch.split(x, 2), torch.split(x, [1, 4])",
    )
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            t(f"torch.scatter_reduce(x, 0, g, u, '{reduce}', include_self={include})")
            if reduce != "sum":
                t(f"torch.index_reduce(x, 0, i, v, '{reduce}', include_self={include})")
    t(
        "torch.cartesian_prod(i[:2], j), torch.combinations(i)",
        "torch.tril_indices(3, 4), torch.triu_indices(4, 3, 1)",
        "torch.unravel_index(k, (5, 7))",
    )


def views(t):
    t.bind(x=t.rand(4, 6), y=t.rand(2, 3, 4, 5), line=t.rand(37), one=t.rand(1, 3, 1), s=t.rand(), z=t.rand(0, 4))
    t(
        "x.t(), x.mT, x.T, y.permute(3, 1, 0, 2), y.transpose(1, -1), y.movedim(0, 2), y.swapaxes(0, 3)",
        "x.reshape(3, 8), x.view(-1), x.t().reshape(2, 12), y.flatten(1, 2), y.unflatten(1, (3, 1)), z.reshape(4, 0), z.flatten()",
        "x.unsqueeze(0), x.unsqueeze(-1), one.squeeze(), one.squeeze(0), one.squeeze((0, 2)), s.unsqueeze(0), one.squeeze(1)",
        "x.expand(3, 4, 6), one.expand(2, 3, 5), s.expand(2, 3), one.expand_as(torch.zeros(2, 3, 4)), z.expand(2, 0, 4)",
        "x[::2], x[1::2, ::3], x[:, 2:-1], line[3:30:7], line.narrow(0, 5, 4), x.select(1, -1), x[4:], x[:0]",
        "torch.diagonal(x), torch.diagonal(x, 1), torch.diagonal(y, -1, 1, 3), torch.diag(x), torch.diag(line[:3]), torch.diag(line[:3], -1), torch.diag_embed(x, 1), torch.diagflat(x[:2, :2])",
        "line.unfold(0, 5, 3), y.unfold(2, 2, 1), y.unfold(3, 5, 1)",
        "torch.as_strided(x, (3, 2), (2, 7), 1), torch.as_strided(line, (3, 3), (1, 1), 4), torch.as_strided(line, (2, 5), (0, 2))",
        "torch.cat([x, x[:1]]), torch.cat([x, x.flip(1)], 1), torch.cat([z, x[:, :4]]), torch.cat([line[:0], line])",
        "torch.stack([x, x + x], 1), torch.hstack([x, x]), torch.vstack([x, x]), torch.dstack([x, x]), torch.column_stack([line, line]), torch.block_diag(x, x[:1])",
        "x.flip(0), y.flip((1, 3)), torch.fliplr(x), torch.flipud(x), z.flip(0)",
        "torch.roll(x, 2), torch.roll(x, (1, -2), (0, 1)), torch.roll(y, -7, 3), torch.roll(line, 100), torch.roll(z, 1, 1)",
        "torch.rot90(x), torch.rot90(x, 2), torch.rot90(y, -1, (1, 3)), torch.rot90(x, 3, (1, 0))",
        "torch.tril(x), torch.tril(x, -1), torch.tril(y, 2), torch.triu(x), torch.triu(x, 1), torch.triu(y, -2), torch.triu(x[:1], 7)",
        "x.repeat(2, 3), x.repeat(2, 1, 1), line.repeat(0), torch.tile(x, (2,)), torch.tile(x, (1, 2, 2))",
        "torch.repeat_interleave(x, 2), torch.repeat_interleave(x, 3, 1), torch.repeat_interleave(x, torch.tensor([1, 0, 2, 3]), 0, output_size=6)",
        "torch.meshgrid(line[:3], line[:4], indexing='ij'), torch.meshgrid(line[:3], line[:4], indexing='xy')",
        "torch.unbind(x), torch.unbind(y, 2)[1], torch.chunk(line, 5), torch.hsplit(x, 2), torch.vsplit(x, 2), torch.dsplit(y[..., :4], 2)",
        "torch.atleast_1d(s), torch.atleast_2d(line), torch.atleast_3d(x), torch.broadcast_tensors(x, x[:1])",
        "torch.broadcast_to(x[:, :1], (2, 4, 6)), torch.ravel(x.t()), x.contiguous(), x.t().contiguous()",
        "F.pixel_shuffle(y[:, :1].expand(2, 4, 4, 5), 2), F.pixel_unshuffle(y[:, :, :, :4], 2), F.channel_shuffle(y.transpose(1, 2), 2)",
        "y.view(y.dtype), x.view_as(x.clone()), torch.squeeze_copy(one), torch.t_copy(x), torch.permute_copy(x, (1, 0)), torch.view_copy(x, (24,))",
        "torch.vander(line[:3], 4)",
        "torch.cross(x[:, :3], x[:, 3:], dim=1)",
        "x.new_zeros(2, 3), x.new_full((2,), 1), x.new_ones(3), x.new_empty(0)",
    )


def mutation(t):
    t.bind(
        x=t.rand(4, 6),
        y=t.rand(2, 3, 4),
        line=t.rand(37),
        i=t.ints(0, 4, 3),
        d=torch.tensor([3, 0, 1]),
        m=t.rand(4, 6, dtype=TYPES["bool"]),
        s=t.rand(),
        r=t.rand(6),
        c=t.rand(4, 1),
    )
    for body in (
        "y[:, 0].add_(1)",
        "y[1:3, ::2] = 2",
        "y.t()[2].mul_(3)",
        "y.view(-1)[5:9].fill_(1)",
        "y[:, 1].copy_(y[:, 2])",
        "y[y > 1] = 0",
        "y[i] = r",
        "y[i, 2] = s",
        "y.masked_fill_(m, 2)",
        "y.diagonal().zero_()",
        "y.unsqueeze(0)[0, 1].sub_(1)",
        "y.transpose(0, 1)[1:4].add_(c.t())",
        "y.index_add_(0, i, x[:3])",
        "y.scatter_(1, i[:, None], 4)",
        "v = y[1:]; w = v[:, ::2]; w.add_(1); v.mul_(2)",
        "v = y.view(2, 12); y.add_(1); v[0] = 0",
        "y[0], y[1] = y[1].clone(), y[0].clone()",
        "y.split(3, 1)[1].add_(2)",
        "y.chunk(2)[0].neg_()",
        "v = y.expand(2, 4, 6)[0]; v[1] = 3",
        "y.clamp_(-1, 1); y.t_(); y.unsqueeze_(0); y.squeeze_(0)",
        "y.as_strided((2, 2), (6, 1), 7).add_(5)",
        "y.index_put_((i,), r, accumulate=True)",
        "y.index_fill_(1, i, 2)",
        "y.index_copy_(0, d, x.flip(0)[:3])",
        "y += 1; y *= 2; y -= x",
        "y //= 2",
        "y /= 2",
        "y **= 2",
        "y &= x",
        "y |= x",
        "y.logical_not_()",
        "y.fill_diagonal_(7)",
        "y.tril_(); y[2:].triu_(1)",
        "y.masked_scatter_(m, x.flip(0))",
        "y.put_(i, r[:3])",
        "y.swapaxes_(0, 1); y[0].zero_()",
        "y.copy_(r); y[:2].copy_(c[:2])",
        "y.unbind(1)[3].fill_(9)",
        "y.unfold(1, 2, 2)[:, 1].add_(1)",
        "y.relu_(); y.sqrt_(); y.exp_()",
        "y.flip(0).add_(1)",
        "y.narrow(1, 2, 3).select(0, 1).mul_(s)",
        "y.cumsum_(1)",
        "y.addcmul_(x, x, value=2)",
        "y.lerp_(x, 0.25)",
        "y[..., -1:] = c; y[None, :, 0] = 1",
    ):
        t(f"y = x.clone(); {body}; y")
    t(
        "v = line.clone(); v[::2] += v[1::2].sum(); v",
        "v = line.clone(); w = v[10:20]; w[2:4] = w[4:6] * 2; v, w",
        "v = y.clone(); v[:, :, 1].add_(1); v[0].mul_(2); v.sum(0), v",
    )


def creation(t):
    t.bind(x=t.rand(3, 5), i=t.ints(0, 5, 4))
    name = t.type
    low = 0 if name == "u8" else -3
    t(
        f"torch.full((2, 3), 2, dtype={name}), torch.zeros(0, 3, dtype={name}), torch.ones((), dtype={name}), torch.eye(3, 4, dtype={name}), torch.eye(2, dtype={name})",
        f"torch.arange(7, dtype={name}), torch.arange(2, 9, 3, dtype={name})",
        f"torch.arange(5, -3, -2, dtype={name})",
        f"torch.arange(0.5, 3.2, 0.7, dtype={name})",
        f"torch.linspace(0, 10, 5, dtype={name}), torch.linspace(3, {low}, 7, dtype={name}), torch.linspace(1, 2, 1, dtype={name}), torch.linspace(1, 2, 0, dtype={name})",
        f"torch.linspace({low}, 100, 131, dtype={name})",
        f"torch.logspace(0, 2, 5, dtype={name})",
        f"torch.logspace(0, 3, 4, base=2, dtype={name})",
        f"torch.scalar_tensor(3, dtype={name}), torch.tensor([[1, 2], [0, 1]], dtype={name})",
        "torch.zeros_like(x), torch.ones_like(x.t()), torch.full_like(x, 1)",
        f"torch.tril(torch.ones(3, 4, dtype={name}))",
        f"torch.hann_window(7, dtype={name}), torch.hamming_window(6, periodic=False, dtype={name}), torch.blackman_window(5, dtype={name}), torch.bartlett_window(8, dtype={name}), torch.kaiser_window(5, dtype={name})",
        "torch.arange(x.shape[0]), torch.arange(1.0, 4.0), torch.full((2,), True), torch.full((2,), 1.5), torch.linspace(0, 1, 4)",
        "torch.empty_like(x).fill_(2), torch.empty(3, 2).zero_()",
    )


FAMILIES = {
    "indexing": (ALL, indexing),
    "views": (SOME, views),
    "mutation": (("f32", "i64", "bf16", "bool"), mutation),
    "creation": (ALL, creation),
}
