"""Dense linear algebra. Factors that are not unique are compared by what they satisfy: a program multiplies them out."""

import torch

TYPES = ("f32", "f64")


def matrices(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    eye = torch.eye(5, dtype=t.dtype)
    x = r(2, 5, 5)
    t.bind(x=x + 3 * eye, s=x @ x.mT + eye, h=x + x.mT, b=r(2, 5, 3), v=r(2, 5), tall=r(2, 6, 4), wide=r(3, 5), one=r(1, 1), e=torch.zeros(2, 0, 0, dtype=t.dtype))
    low = torch.outer(torch.arange(1.0, 6.0), torch.arange(1.0, 5.0)).to(t.dtype)
    t.bind(low=low, z=torch.stack([eye, torch.zeros_like(eye)]), w=r(24, 24))
    L = "L = torch.linalg; "
    t(
        L + "L.solve(x, b), L.solve(x, v), L.solve(x[0], b), L.solve(x, b.mT, left=False), L.solve_ex(x, b[0]), L.solve(w, w[:, :2])",
        L + "L.inv(x), torch.inverse(x[0]), L.inv_ex(x), L.inv_ex(z)[1], L.inv(e), L.tensorinv(s[0].reshape(5, 5, 1), 1)",
        L + "L.det(x), torch.det(x[0]), L.slogdet(h), torch.logdet(s), torch.logdet(h), L.det(z), L.slogdet(z), L.det(e), L.det(one), L.slogdet(w)",
        L + "L.lu_factor(x), L.lu_factor_ex(tall), L.lu(tall), L.lu(wide), torch.lu_unpack(*L.lu_factor(x)), L.lu_factor_ex(z)[2], L.lu(x)",
        L + "L.lu_solve(*L.lu_factor(x), b), L.lu_solve(*L.lu_factor(x), b.mT, left=False), L.lu_solve(*L.lu_factor(x), b, adjoint=True), L.lu_solve(*L.lu_factor(x), b.mT, left=False, adjoint=True)",
        L + "L.cholesky(s), L.cholesky(s, upper=True), L.cholesky_ex(h)[1], torch.cholesky_solve(b, L.cholesky(s)), torch.cholesky_solve(b, L.cholesky(s, upper=True), upper=True), torch.cholesky_inverse(L.cholesky(s)), L.cholesky(e)",
        L + "L.solve_triangular(x, b, upper=True), L.solve_triangular(x, b, upper=False), L.solve_triangular(x, b.mT, upper=True, left=False), L.solve_triangular(x.tril(-1), b, upper=False, unitriangular=True), L.solve_triangular(x[0], b, upper=True)",
        "torch.triangular_solve(b, x), torch.triangular_solve(b, x, upper=False, transpose=True), torch.triangular_solve(b, x, unitriangular=True)[0]",
        L + "q, r = L.qr(tall); q, r, q @ r; ".rstrip("; "),
        L + "L.qr(tall, mode='complete'), L.qr(wide), L.qr(tall, mode='r')[1], L.qr(one), L.qr(w)[1]",
        L + "a, tau = torch.geqrf(tall); a, tau, L.householder_product(a, tau), L.householder_product(a, tau[:, :2]), torch.orgqr(a, tau), torch.ormqr(a, tau, tall), torch.ormqr(a, tau, tall.mT, left=False, transpose=True)",
        L + "w1, q = L.eigh(h); w1, (q * w1[..., None, :]) @ q.mT, q.mT @ q, L.eigvalsh(h), L.eigvalsh(x, UPLO='U'), L.eigvalsh(w @ w.mT), L.eigvalsh(z), L.eigh(one)[0]",
        L + "u, d, v1 = L.svd(tall, full_matrices=False); (u * d[..., None, :]) @ v1, d, u.mT @ u, v1 @ v1.mT, L.svdvals(x), L.svdvals(wide), L.svdvals(low), L.svdvals(z), L.svdvals(w)",
        L + "u, d, v1 = L.svd(tall); u.mT @ u, v1 @ v1.mT, u[..., :4] * d[..., None, :] @ v1",
        L + "u, d, v1 = L.svd(wide); u @ u.mT, v1 @ v1.mT, (u * d) @ v1[:3]",
        L + "u, d, v1 = L.svd(low, full_matrices=False); u.mT @ u, v1 @ v1.mT, (u * d) @ v1",
        "u, d, v1 = torch.svd(tall); (u * d[..., None, :]) @ v1.mT",
        L + "y, q = L.eig(x); torch.view_as_real((x.to(q.dtype) @ q) - q * y[..., None, :]), q.abs().square().sum(-2), y.real.sort(-1).values, y.imag.abs().sort(-1).values",
        L + "y = L.eigvals(h); y.real.sort(-1).values, y.imag.abs().sum(-1), L.eigvals(z).real.sort(-1).values, L.eigvals(w).sum().real, L.eigvals(w).abs().sort().values",
        L + "L.pinv(tall), L.pinv(wide), L.pinv(low), L.pinv(h, hermitian=True), torch.pinverse(x[0]), L.pinv(x, rtol=1e-3), L.pinv(x, atol=0.5)",
        L + "L.matrix_rank(tall), L.matrix_rank(low), L.matrix_rank(z), L.matrix_rank(h, hermitian=True), L.matrix_rank(x, atol=2.0), L.matrix_rank(x, tol=1.5)",
        L + "L.cond(x), L.cond(x, -2), L.cond(x, 'fro'), L.cond(x, 'nuc'), L.cond(x, 1), L.cond(tall)",
        L + "L.matrix_norm(tall, 'nuc'), L.matrix_norm(tall, 2, keepdim=True), L.matrix_norm(tall, -2), L.norm(wide, 2), L.norm(tall, 'nuc', dim=(0, 2)), torch.linalg.matrix_norm(x, 2, dim=(0, 1))",
        L + "L.matrix_power(x, -1), L.matrix_power(x, -2), L.matrix_exp(x / 4)",
        L + "L.tensorsolve(s[0].reshape(5, 1, 5), v[0][:, None]), L.tensorsolve(s[0].reshape(5, 5, 1), v[0], dims=(2,)), L.vander(v), L.vander(v[0], N=3), L.vander(torch.arange(4))",
        L + "y, p, i = L.ldl_factor_ex(h); y, p, i, L.ldl_solve(y, p, b), L.ldl_factor(s), L.ldl_factor_ex(z)[2]",
        "torch.distributions.MultivariateNormal(v, s, validate_args=False).log_prob(v + 0.5)",
    )


def complex_matrices(t):
    """The same of complex matrices; programs give real tensors."""
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    for name, sizes in {"x": (2, 5, 5), "b": (2, 5, 3), "t": (2, 6, 4), "u": (3, 5), "f": (4, 2), "g": (2, 4)}.items():
        t.bind(**{f"{name}r": r(*sizes), f"{name}i": r(*sizes)})
    t.bind(eye=torch.eye(4, dtype=t.dtype), zero=torch.zeros(4, 3, dtype=t.dtype))
    L = "L = torch.linalg; V = torch.view_as_real; x, b = torch.complex(xr, xi), torch.complex(br, bi); h = x + x.mH; s = x @ x.mH + torch.eye(5, dtype=x.dtype); "
    tall = "tall, wide = torch.complex(tr, ti), torch.complex(ur, ui); low = torch.complex(fr, fi) @ torch.complex(gr, gi); "
    same = "one, none = torch.complex(eye, eye * 0), torch.complex(zero, zero); "
    t(
        L + "V(L.cholesky(s)), V(L.cholesky(s, upper=True)), L.cholesky_ex(h)[1], V(torch.cholesky_solve(b, L.cholesky(s))), V(torch.cholesky_solve(b, L.cholesky(s, upper=True), upper=True)), V(torch.cholesky_inverse(L.cholesky(s)))",
        L + "V(L.solve_triangular(s, b, upper=True)), V(L.solve_triangular(s, b, upper=False)), V(L.solve_triangular(s, b.mT, upper=True, left=False)), V(L.solve_triangular(x * 0.1, b, upper=False, unitriangular=True))",
        L + "V(L.det(x)), V(torch.det(h[0])), V(L.slogdet(x)[0]), L.slogdet(x)[1], V(L.lu_factor(x)[0]), L.lu_factor(x)[1], L.lu_factor_ex(x * 0)[2], V(L.matrix_power(x, 3)), V(L.matrix_power(x, -1)), V(L.matrix_exp(x / 4))",
        L + tall + "V(L.qr(tall)[0]), V(L.qr(tall)[1]), V(L.qr(tall, mode='complete')[0]), V(L.qr(tall, mode='complete')[1]), V(L.qr(wide)[0]), V(L.qr(wide)[1]), V(L.qr(tall, mode='r')[1]), V(L.qr(tall.real.to(tall.dtype))[1])",
        L + tall + "q, p = L.qr(low); V(q @ p), V(q.mH @ q)",
        L + "w, q = L.eigh(h); w, V((q * w[..., None, :]) @ q.mH), V(q.mH @ q), L.eigvalsh(h), L.eigvalsh(h, UPLO='U'), L.eigvalsh(s)",
        L + same + "w, q = L.eigh(one); w, V((q * w[..., None, :]) @ q.mH), V(q.mH @ q)",
        *(L + tall + same + f"u, d, v = L.svd({name}, full_matrices=False); d, V((u * d[..., None, :]) @ v), V(u.mH @ u), V(v @ v.mH), L.svdvals({name})" for name in ("tall", "wide", "low", "none", "x")),
        *(L + tall + same + f"u, d, v = L.svd({name}); k = d.shape[-1]; V((u[..., :k] * d[..., None, :]) @ v[..., :k, :]), V(u.mH @ u), V(v @ v.mH)" for name in ("tall", "wide", "low", "none")),
        *(L + same + f"m = {name}; w, q = L.eig(m); V(m @ q - q * w[..., None, :]), q.abs().square().sum(-2), w.real.sort(-1).values, w.imag.sort(-1).values, L.eigvals(m).abs().sort(-1).values" for name in ("x", "h / 4", "one", "one * 0", "x.real.to(x.dtype)")),
        L + tall + "V(L.pinv(tall)), V(L.pinv(wide)), V(L.pinv(tall, rtol=1e-3)), L.matrix_rank(tall), L.matrix_rank(low), L.matrix_rank(x, atol=2.0), L.cond(x), L.cond(x, -2)",
        L + "V(L.pinv(h, hermitian=True)), L.matrix_rank(h, hermitian=True), V(torch.pinverse(x[0])), L.cond(x, 1), L.cond(x, 'fro'), L.cond(x, 'nuc'), L.cond(x, float('-inf')), V(torch.logdet(s)), V(torch.logdet(x))",
        L + tall + "u, d, v = torch.svd(tall); V((u * d[..., None, :]) @ v.mH), d, V(u.mH @ u)",
        L + tall + "u, d, v = torch.svd(wide, some=False); V((u * d) @ v[:, :3].mH), V(u.mH @ u), V(v.mH @ v)",
        L + tall + "a, tau = torch.geqrf(tall); V(a), V(tau), V(torch.geqrf(wide)[0]), V(torch.geqrf(wide)[1]), V(L.householder_product(a, tau)), V(L.householder_product(a, tau[:, :2])), V(torch.orgqr(a, tau))",
        L + tall + "a, tau = torch.geqrf(tall); V(torch.ormqr(a, tau, tall)), V(torch.ormqr(a, tau, tall, transpose=True)), V(torch.ormqr(a, tau, tall.mT, left=False)), V(torch.ormqr(a, tau, tall.mT.contiguous(), left=False, transpose=True))",
        L + tall + "p, l, m = L.lu(tall); V(p), V(l), V(m), V(p @ l @ m - tall)",
        L + tall + "p, l, m = L.lu(wide); V(p), V(l), V(m)",
        L + "a, p = L.lu_factor(x); V(torch.lu_unpack(a, p)[1]), V(L.lu_solve(a, p, b)), V(L.lu_solve(a, p, b.mT, left=False).resolve_conj()), V(L.lu_solve(a, p, b, adjoint=True).resolve_conj()), V(L.lu_solve(a, p, b.mT, left=False, adjoint=True).resolve_conj()), V(L.solve_ex(x, b)[0])",
        # Symmetric and Hermitian ones; with zeros on the diagonal, so that blocks have two rows; products; and sums of those.
        *(
            L + tall + f"m = {name}; y, p, i = L.ldl_factor_ex(m, hermitian={hermitian}); z = L.ldl_solve(y, p, {right}, hermitian={hermitian}); V(y), p, i, V(z), V(m @ z)"
            for hermitian in (False, True)
            for turned in ("mH" if hermitian else "mT",)
            for name, right in ((f"x + x.{turned}", "b"), (f"(x + x.{turned}) * (1 - torch.eye(5, dtype=x.dtype))", "b"), (f"x[0] @ x[0].{turned}", "b[0]"), (f"tall @ tall.{turned} + 9 * torch.eye(6, dtype=x.dtype)", "tall"))
        ),
        L + "y, p = L.ldl_factor(h, hermitian=True); V(L.ldl_solve(y, p, b[0], hermitian=True)), V(L.ldl_solve(y[1], p[1], b, hermitian=True)), L.ldl_factor_ex(h * 0)[1], L.ldl_factor_ex(h * 0)[2], L.ldl_factor_ex(h * 0, hermitian=True)[2]",
        L + "V(L.tensorinv(s[0].reshape(5, 5, 1), 1)), V(L.tensorsolve(s[0].reshape(5, 1, 5), b[0, :, :1])), V(L.vander(b[0])), V(L.vander(b[0, 0], N=6)), V(torch.triangular_solve(b, s)[0]), V(torch.triangular_solve(b, s, upper=False, transpose=True)[0])",
        L + "V(torch.addr(x[0], b[0, :, 0], b[1, :, 0], beta=0.5)), V(torch.addbmm(x[0], x, x)), V(torch.chain_matmul(x[0], x[1], x[0]))",
        L + tall + "L.matrix_norm(tall), L.matrix_norm(tall, 1), L.matrix_norm(tall, 'nuc'), L.matrix_norm(tall, 2, keepdim=True), L.norm(wide), L.norm(wide, 2), L.norm(tall, dim=1)",
    )


def complex_errors(t):
    """Complex matrices of which PyTorch raises an error."""
    eye, zero = torch.eye(3, dtype=torch.complex64), torch.zeros(3, 3, dtype=torch.complex64)
    for text in ("torch.linalg.inv(i)", "torch.linalg.solve(i, i)", "torch.linalg.cholesky(i)", "torch.linalg.lu_factor(i)[0]"):
        t.data(f"torch.view_as_real({text})", {"i": eye}, [{"i": zero}])
    for text in ("torch.linalg.eigvalsh(i)", "torch.linalg.svdvals(i)"):
        t.data(text, {"i": eye}, [{"i": eye * float("nan")}])


def fill_complex(t):
    complex_matrices(t)
    if t.type == "f32":
        complex_errors(t)


def errors(t):
    """Matrices of which PyTorch raises an error."""
    eye = torch.eye(3, dtype=torch.float32)
    nan = eye * float("nan")
    zero = torch.zeros(3, 3)
    for text in ("torch.linalg.inv(i)", "torch.linalg.solve(i, i)", "torch.linalg.cholesky(i)", "torch.linalg.lu_factor(i)[0]"):
        t.data(text, {"i": eye}, [{"i": zero}])
    for text in ("torch.linalg.eigvalsh(i)", "torch.linalg.svdvals(i)", "torch.linalg.pinv(i)"):
        t.data(text, {"i": eye}, [{"i": nan}])


def fill(t):
    matrices(t)
    if t.type == "f32":
        errors(t)


FAMILIES = {"matrices": (TYPES, fill), "complex_matrices": (TYPES, fill_complex)}
