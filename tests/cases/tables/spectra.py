"""Complex numbers, and Fourier transforms of them. Programs take and give real tensors, between which all is complex."""

import torch

Z = "z, w = torch.complex(a, b), torch.complex(c, d); "
R = "torch.view_as_real"


def arithmetic(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    t.bind(a=r(3, 4), b=r(3, 4), c=r(4), d=r(4), x=r(3, 4), s=r(), p=r(5, 2), i=t.ints(0, 3, 5), j=torch.tensor([2, 0, 1]))
    t.bind(e=torch.tensor([0.0, 0.0, 1.0, -1.0, -2.0, 0.5, -0.0], dtype=t.dtype), f=torch.tensor([0.0, 1.0, 0.0, 0.0, 1e-3, -3.0, -1.0], dtype=t.dtype))
    two = ("z + w", "z - w", "z * w", "z / w", "z + x", "x - z", "z * x", "x / z", "z / s", "z * s", "z + 2", "z * 1.5", "z * 2j", "3 - z", "torch.add(z, w, alpha=2)", "torch.sub(z, w, alpha=3)")
    for text in two:
        t(Z + f"{R}({text})")
    one = ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "sinh", "cosh", "tanh", "sigmoid", "reciprocal", "square", "log2", "log10", "neg", "conj", "sgn", "conj_physical")
    for name in one:
        t(Z + f"{R}(torch.{name}(z).resolve_conj())")
    for name in ("exp", "sqrt", "sgn", "square", "neg"):
        t(f"{R}(torch.{name}(torch.complex(e, f)))")
    for name in ("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "expm1", "log1p", "exp2", "sinc", "positive", "nan_to_num"):
        t(Z + f"{R}(torch.{name}(z))")
    for name in ("log1p", "expm1", "asinh", "atan"):
        t(Z + f"{R}(torch.{name}(z * 1e-3))")
    t(
        Z + f"{R}(torch.addcmul(z, z, w)), {R}(torch.addcmul(z, w, z, value=2)), {R}(torch.addcdiv(z, w, z, value=0.5))",
        Z + f"{R}(torch.lerp(z, z * w, 0.3)), {R}(torch.lerp(z, z.conj(), x.to(z.dtype))), {R}(torch.float_power(z, 2))",
        Z + "torch.isclose(z, z + 1e-7), torch.isclose(z, z * 2), z.any(), z.all(), torch.count_nonzero(z), torch.logical_not(z), torch.complex(e, f).nonzero()[:0]",
        Z + "z.var(), z.std(0), z.var(1, keepdim=True), z.norm(), torch.linalg.vector_norm(z, dim=1), torch.linalg.vector_norm(z, 1), torch.norm(z, dim=0)",
        Z + f"{R}(z.prod()), {R}(z.prod(1)), {R}(z.prod(0, keepdim=True)), {R}(z[:0].prod()), {R}(z[:0].prod(0)), {R}(z.cumprod(1)), {R}(torch.cumprod(w, 0))",
        Z + f"{R}(torch.where(x > 0, z, 2.0)), {R}(torch.where(x > 0, 1.5, z)), {R}(z.index_fill(0, i, 2.0)), {R}(z.scatter(0, i[None, :4] % 3, 2.0))",
    )
    t(
        Z + "z.abs(), z.angle(), z.real, z.imag, torch.isnan(z), torch.isinf(z), torch.isfinite(z)",
        "y = torch.complex(e, f); y.abs(), y.angle(), y == 1, y != y.conj()",
        Z + "z == w, z != z, z == x",
        *(Z + f"{R}(z ** {n})" for n in ("2", "3", "-1", "-2", "0", "0.5", "1.7", "w", "x")),
        f"{R}(torch.polar(a.abs(), b)), {R}(2 ** torch.complex(a, b))",
        f"{R}(torch.view_as_complex(p) * torch.view_as_complex(p))",
        Z + f"{R}(z.to(torch.complex128)), {R}(x.to(torch.complex64)), {R}(torch.where(x > 0, z, w)), {R}(torch.where(x > 0, z, x))",
        Z + f"{R}(z.masked_fill(x > 0, 2.0)), {R}(torch.zeros_like(z)), {R}(torch.ones_like(z)), {R}(torch.full_like(z, 2.0))",
    )


def layout(t):
    for text in ("z.t()", "z.reshape(2, 6)", "z[1]", "z[:, 1:3]", "z.unsqueeze(1)", "z.expand(2, 3, 4)", "z.flip(0)", "z.roll(1, 1)", "z.flatten()", "z[i]", "z[:, ::2].contiguous()", "z.permute(1, 0)", "torch.cat([z, w.unsqueeze(0)])", "torch.cat([z, x])", "torch.stack([z, z.conj().resolve_conj()])", "z.repeat(2, 1)", "z.tril()", "z.index_select(0, i)", "F.pad(z, (1, 2))", "torch.diag_embed(w)", "z.mH.resolve_conj()", "z.adjoint().resolve_conj()", "z.H.resolve_conj()", "torch.diag(w)", "torch.diagflat(w)", "z.tile(2, 1)", "z.repeat_interleave(2, 0)", "torch.hstack([z, z])", "torch.vstack([z, w])", "torch.dstack([z, z])", "torch.column_stack([w, w])", "z.rot90()", "torch.take(z, i)", "torch.block_diag(z, w)", "torch.cartesian_prod(w, w)", "torch.atleast_2d(w)", "z.diagonal_scatter(w[:3])", "z.index_add(0, j, z)", "z.index_copy(0, j, z.conj().resolve_conj())", "torch.scatter_add(z, 0, j[None], w[None, :3])", "z.scatter(0, j[None], w[None, :3])", "z.masked_scatter(x > 0, z.flip(0))", "torch.trapezoid(z)", "torch.cumulative_trapezoid(z)", "torch.gradient(w)[0]", "torch.meshgrid(w, w, indexing='ij')[1]", "torch.eye(3, dtype=z.dtype) @ z", "F.dropout(z, 0.5, False)"):
        t(Z + f"{R}({text})")
    t(
        Z + f"u, v = z.chunk(2, 1); {R}(u), {R}(v)",
        Z + f"u, v, k = z.unbind(0); {R}(u * v + k)",
        Z + f"{R}(z.sum()), {R}(z.sum(0)), {R}(z.mean(1, keepdim=True)), {R}(z.cumsum(1))",
        Z + f"{R}(z @ z.t()), {R}(z @ w), {R}(z @ x.t().to(z.dtype)), {R}(torch.einsum('ij,kj->ik', z, z.conj()))",
        Z + f"{R}(torch.einsum('ij,j->i', z, w)), {R}(torch.outer(w, w)), {R}(torch.dot(w, w)), {R}(torch.bmm(z[None], z.t()[None]))",
        Z + f"{R}(torch.vdot(w, w)), {R}(torch.linalg.vecdot(z, z + 1)), {R}(torch.kron(z, w[None])), {R}(torch.inner(z, z)), {R}(torch.tensordot(z, z, dims=([1], [1]))), {R}(torch.linalg.cross(z[:, :3], z[:, 1:]))",
        Z + f"{R}(F.linear(z, z, w[:3])), {R}(F.linear(z, z)), {R}(torch.addmm(w[:3], z, z.t(), beta=2, alpha=0.5)), {R}(torch.baddbmm(z[None, :, :3], z[None], z.t()[None]))",
        Z + f"k = z[:, None, :3]; {R}(F.conv1d(z[None], z[:2, :, None].repeat(1, 1, 2)[:, :3], w[:2])), {R}(F.conv1d(z[:, None], k, padding=1)), {R}(F.conv_transpose1d(z[None], z[:, None, :2], w[:1], stride=2)), {R}(F.conv2d(z[None, None], z[None, None, :2, :2], w[:1]))",
        Z + f"{R}(z[:0]), {R}(z[:0].sum(0)), {R}(z[:1, :1] * w[:1])",
        Z + f"{R}(z.hsplit(2)[1]), {R}(z.hsplit([1, 3])[1]), {R}(z.vsplit(3)[2]), {R}(z.tensor_split(2, 1)[1]), {R}(z.tensor_split([1])[1]), {R}(z[None].dsplit(2)[0]), {R}(torch.unsafe_chunk(z, 2, 1)[1])",
        Z + f"{R}(F.pixel_shuffle(z.reshape(1, 4, 1, 3), 2)), {R}(F.pixel_unshuffle(z.reshape(1, 1, 2, 6), 2)), {R}(F.channel_shuffle(z.reshape(1, 4, 3), 2)), {R}(z.fliplr()), {R}(z.flipud()), {R}(z.moveaxis(0, 1))",
        Z + f"{R}(torch.ops.aten.reflection_pad1d(z[None], (1, 2))), {R}(torch.ops.aten.replication_pad1d(z[None], (2, 1))), {R}(torch.combinations(w)), {R}(torch.linalg.diagonal(z)), {R}(torch.row_stack([z, w]))",
        Z + f"q = z[None]; {R}(F.pad(q, (1, 2), mode='reflect')), {R}(F.pad(q, (2, 1), mode='replicate')), {R}(F.pad(q, (3, 1), mode='circular')), {R}(F.pad(z, (1, -1), value=1.5)), {R}(torch.constant_pad_nd(z, (0, 1, 1, 0), 2 - 3j))",
        Z + f"q = z[None, None]; {R}(F.pad(q, (1, 2, 2, 1), mode='reflect')), {R}(F.pad(q, (1, 2, 2, 1), mode='replicate')), {R}(F.pad(q, (1, 2, 2, 1), mode='circular')), {R}(F.pad(z[None, None, None], (1, 0, 0, 2, 0, 0), mode='replicate'))",
        Z + f"{R}(torch.logsumexp(z, 1)), {R}(torch.logsumexp(z * 200, (0, 1), keepdim=True)), torch.logsumexp(w - float('inf'), 0).real, {R}(torch.logsumexp(z[:, :0], 1))",
        Z + f"{R}(w.repeat_interleave(torch.tensor([2, 0, 1, 3]), output_size=6)), {R}(torch.broadcast_tensors(w, z)[0]), {R}(w.put(torch.tensor([2, 0]), z[1, :2])), {R}(torch.permute_copy(z, (1, 0))), {R}(torch.view_copy(z, (2, 6)))",
        Z + f"y = z.clone(); y[0] = w; {R}(y)",
        Z + f"y = z.clone(); y *= 2; y += w; {R}(y)",
        Z + f"y = z.clone(); v = {R}(y); v[..., 0] = 1.0; {R}(y), v",
        Z + f"y = z.clone(); y.real.mul_(2); y.imag[1:] = 0; {R}(y)",
        Z + f"y = z.clone(); v = y[:, 1:]; v.add_(1); {R}(y), {R}(v)",
        Z + f"y = z.clone(); y[:, 0] = 1; y[1].fill_(2); {R}(y), {R}(y.T), {R}(y.mT), {R}(y.swapaxes(0, 1))",
    )


def interface(t):
    """Complex numbers as inputs and outputs."""
    dtype = torch.complex64 if t.dtype == torch.float32 else torch.complex128
    r = lambda *sizes: torch.complex(t.rand(*sizes, low=-2, high=2), t.rand(*sizes, low=-2, high=2))
    t.bind(z=r(3, 4), w=r(4), s=r(), e=r(0, 3), m=r(2, 3, 3) + 2 * torch.eye(3, dtype=dtype), v=r(2, 3, 2), u=r(2, 3), x=t.rand(3, 4))
    t(
        "z", "s", "e", "z.conj()", "z, z * w, z.real", "z + 1j", "z.abs(), z.t()", "x.to(z.dtype)", "z @ w, z.sum()",
        "z[1:], z.flip(0), z.reshape(-1)", "torch.view_as_real(z), torch.view_as_complex(torch.view_as_real(z))", "s * z, s.imag",
        "e * 2, e.sum(0)", "torch.complex(x, x)", "torch.fft.fft(z), torch.fft.rfft(x)", "z == z, z.mean()", "y = z.clone(); y.add_(w); y",
        "torch.linalg.solve(m, v)", "torch.linalg.solve(m, u)", "torch.linalg.solve(m, v.mT, left=False)",
        "torch.linalg.inv(m)", "torch.inverse(m[0])",
    )


def transforms(t):
    r = lambda *sizes: t.rand(*sizes, low=-1, high=1)
    lengths = (1, 2, 5, 8, 30, 67, 144, 263)
    t.bind(x400=r(2, 400))
    t(f"{R}(torch.fft.rfft(x400)), torch.fft.irfft(torch.fft.rfft(x400))")
    for n in lengths:
        t.bind(**{f"x{n}": r(2, n), f"y{n}": r(2, n)})
        z = f"z = torch.complex(x{n}, y{n}); "
        # Each transform of a large prime length is three of another length.
        if n == 263:
            t(z + f"{R}(torch.fft.fft(z))")
            continue
        t(z + f"{R}(torch.fft.fft(z)), {R}(torch.fft.rfft(x{n})), torch.fft.irfft(z, n={n})")
        t(z + f"{R}(torch.fft.ifft(z, norm='ortho')), torch.fft.irfft(z), {R}(torch.fft.ihfft(x{n}).resolve_conj()), torch.fft.hfft(z, n={n})" if n > 1 else z + f"{R}(torch.fft.ifft(z))")
    # Passes of every kind: factors alone and together, rows that are no whole vectors, convolutions.
    for n in (34, 37, 64, 98, 99, 253, 576, 1000):
        t.bind(**{f"x{n}": r(2, n), f"y{n}": r(2, n)})
        t(f"z = torch.complex(x{n}, y{n}); {R}(torch.fft.fft(z)), {R}(torch.fft.ifft(z)), {R}(torch.fft.rfft(x{n})), torch.fft.irfft(z, n={n}, norm='ortho')")
    t.bind(u=r(2, 3, 6, 10), v=r(2, 3, 6, 10))
    z = "z = torch.complex(u, v); "
    for norm in ("backward", "ortho", "forward"):
        t(z + f"{R}(torch.fft.fft(z, dim=1, norm='{norm}')), torch.fft.irfft(z, norm='{norm}'), {R}(torch.fft.rfft(u, dim=2, norm='{norm}'))")
    norm = "ortho"
    t(
        z + f"{R}(torch.fft.fft2(z, norm='{norm}')), {R}(torch.fft.ifft2(z, norm='{norm}')), {R}(torch.fft.rfft2(u, norm='{norm}')), torch.fft.irfft2(z, norm='{norm}')",
        z + f"{R}(torch.fft.fftn(u, dim=(1, 3), norm='{norm}')), {R}(torch.fft.ifftn(z, norm='{norm}'))",
        z + f"torch.fft.irfftn(z, dim=(0, 2), norm='{norm}'), {R}(torch.fft.rfftn(u, dim=(3, 1), norm='{norm}')), torch.fft.irfftn(z, s=(7, 9), norm='{norm}')",
    )
    t(
        z + f"{R}(torch.fft.fft(z, n=7)), {R}(torch.fft.fft(z, n=15, dim=2)), {R}(torch.fft.rfft(u, n=13)), torch.fft.irfft(z, n=9), torch.fft.irfft(z, n=30)",
        z + f"torch.fft.hfft2(z, norm='{norm}'), torch.fft.hfftn(z, dim=(0, 2), norm='{norm}'), torch.fft.hfft2(u), torch.fft.hfftn(z, s=(7, 9)), {R}(torch.fft.ihfft2(u)), {R}(torch.fft.ihfftn(u, dim=(3, 1), norm='{norm}')), {R}(torch.fft.ihfftn(u, s=(4, 6)))",
        z + f"{R}(torch.fft.fftshift(z)), torch.fft.fftshift(u, dim=1), torch.fft.ifftshift(u), {R}(torch.fft.ifftshift(z, dim=(1, 3)))",
        f"torch.fft.fftfreq(8), torch.fft.fftfreq(7, 0.5), torch.fft.rfftfreq(8), torch.fft.rfftfreq(9, 2.0)",
        f"torch.fft.irfft2(torch.fft.rfft2(u), s=(6, 10)), torch.fft.irfft(torch.fft.rfft(u, dim=2) * 2, n=6, dim=2)",
    )


def short_time(t):
    r = lambda *sizes: t.rand(*sizes, low=-1, high=1)
    t.bind(x=r(2, 200), w=torch.hann_window(32, dtype=t.dtype), w2=torch.hamming_window(20, dtype=t.dtype), w3=torch.hann_window(50, dtype=t.dtype))
    for text in ("x, 32, 8, window=w", "x, 32, 8, 20, w2", "x[0], 32, 10, window=w, center=False", "x, 50, 13, window=w3, normalized=True", "x, 32, 16, window=w, onesided=False", "x, 32, 8, window=w, pad_mode='constant'"):
        t(f"{R}(torch.stft({text}, return_complex=True))")
    s = "s = torch.stft(x, 32, 8, window=w, return_complex=True); "
    t(
        s + "torch.istft(s, 32, 8, window=w), torch.istft(s * 0.5, 32, 8, window=w, length=190), torch.istft(s[0], 32, 8, window=w)",
        "s = torch.stft(x, 50, 10, window=w3, normalized=True, return_complex=True); torch.istft(s, 50, 10, window=w3, normalized=True)",
        s + "s.abs(), s.abs().pow(2).clamp(min=1e-6).log()",
    )


def complexes(t):
    arithmetic(t)
    layout(t)


def spectra(t):
    transforms(t)
    short_time(t)


FAMILIES = {"complex": (("f32", "f64"), complexes), "complex_interface": (("f32", "f64"), interface), "spectra": (("f32", "f64"), spectra)}
