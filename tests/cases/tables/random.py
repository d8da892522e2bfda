"""Random numbers. What is drawn is not what PyTorch draws, so a program gives what does not depend on it: types and sizes,
bounds, and whether moments and counts are near what the distribution says, by seven deviations or more."""

import torch

FLOATS = ("f32", "f64", "f16", "bf16")


def random(t):
    dtype = t.dtype
    name = f"torch.{str(dtype).split('.')[-1]}"
    n = 40000
    t.bind(x=torch.full((n,), 0.25, dtype=dtype), w=torch.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 2.0, 2.0, 0.5]], dtype=dtype))
    t.bind(k=torch.tensor([0.5, 3.0, 30.0], dtype=dtype), m=t.rand(3, 4, low=-1, high=1))
    near = "near = lambda y, mean, width: ((y.double().mean() - mean).abs() < width); "
    within = "within = lambda y, low, high: ((y >= low) & (y <= high)).all(); "
    t(
        near + within + f"y = torch.rand({n}, dtype={name}); y[:2] * 0, within(y, 0, 1), near(y, 0.5, 0.02), near(y ** 2, 1 / 3, 0.02), near(y[1:] * y[:-1], 0.25, 0.02)",
        near + f"y = torch.randn({n // 4}, 4, dtype={name}); y[:2] * 0, near(y, 0, 0.05), near(y ** 2, 1, 0.07), near(y ** 4, 3, 0.6), near(y[1:] * y[:-1], 0, 0.05), near((y > 2).double(), 0.02275, 0.006)",
        "y, z = torch.rand_like(m), torch.randn_like(m); y[:2] * 0, z * 0, (y != z).any(), (torch.rand_like(m) != y).any()",
        near + within + "y = x.clone().uniform_(-1, 3); y[:2] * 0, within(y, -1, 3), near(y, 1, 0.06)",
        near + "y = x.clone().normal_(2, 3); y[:2] * 0, near(y, 2, 0.15), near((y - 2) ** 2, 9, 0.7)",
        near + "y = x.clone().exponential_(2); y[:2] * 0, (y >= 0).all(), near(y, 0.5, 0.03), near((y > 1).double(), 0.1353, 0.015)",
        near + "y = x.clone().log_normal_(0, 0.5); y[:2] * 0, near(y.log(), 0, 0.03), near(y.log() ** 2, 0.25, 0.02)",
        near + "y = x.clone().cauchy_(1, 2); near((y > 1).double(), 0.5, 0.02), near((y > 3).double(), 0.25, 0.02)",
        near + "y = x.clone().geometric_(0.25); (y >= 1).all(), near((y == 1).double(), 0.25, 0.02), near((y <= 3).double(), 0.578, 0.02)",
        near + "y = torch.bernoulli(x); y[:2] * 0, ((y == 0) | (y == 1)).all(), near(y, 0.25, 0.02)",
        near + "y, z = torch.bernoulli(x, 0.75), x.clone().bernoulli_(0.1); near(y, 0.75, 0.02), near(z, 0.1, 0.015), near(x.clone().bernoulli_(x), 0.25, 0.02)",
        near + "y = torch.normal(x, 2 * x); y[:2] * 0, near(y, 0.25, 0.03), near((y - 0.25) ** 2, 0.25, 0.02)",
        "torch.normal(0.0, x) * 0, torch.normal(x, 1.0) * 0, torch.normal(m[0], m[:, :1].abs()) * 0, torch.normal(0.0, 1.0, (2, 3)) * 0",
        near + within + f"y = torch.randint(3, 13, ({n},)); y[:2] * 0, within(y, 3, 12), near(y, 7.5, 0.11), near((y == 3).double(), 0.1, 0.012)",
        within + f"y = torch.randint(7, (5, 3), dtype=torch.int32); y[:2] * 0, within(y, 0, 6), torch.randint_like(m, 5) * 0, within(torch.randint_like(m, -2, 2), -2, 1)",
        within + "y = x.clone().random_(5); y[:2] * 0, within(y, 0, 4), (x.clone().random_() >= 0).all()",
        "p = torch.randperm(100); p.sort().values, (p != torch.arange(100)).any(), torch.randperm(0), torch.randperm(5, dtype=torch.int32).sort().values",
        near + within + "y = torch.multinomial(w, 8000, replacement=True); y[:2] * 0, within(y, 0, 3), near((y[0] == 3).double(), 0.5, 0.045), (y[0] != 1).all(), (y[1] != 0).all(), near((y[1] == 1).double(), 0.444, 0.045)",
        "y = torch.multinomial(w, 3); y[:2] * 0, y[1].sort().values, (y[0] != 1).all(), torch.multinomial(w[0], 1).shape[0] + m * 0",
        near + f"y = torch.poisson(k.repeat(4000, 1)); y[:2] * 0, near(y[:, 0], 0.5, 0.09), near(y[:, 1], 3, 0.2), near(y[:, 2], 30, 0.7), near((y[:, 2].double() - 30) ** 2, 30, 6), near((y[:, 0] == 0).double(), 0.6065, 0.06)",
        near + f"y = torch._standard_gamma(k.repeat(4000, 1)); (y > 0).all(), near(y[:, 0], 0.5, 0.09), near(y[:, 1], 3, 0.2), near(y[:, 2], 30, 0.7), near((y[:, 1].double() - 3) ** 2, 3, 0.9)",
        "y = torch._sample_dirichlet(k); y[:2] * 0, (y.sum() - 1).abs() < 0.02",
        near + "y = F.dropout(x, 0.3); ((y == 0) | ((y - 0.25 / 0.7).abs() < 2e-3)).all(), near((y == 0).double(), 0.3, 0.02)",
        "F.dropout(m, 1.0), F.dropout(m, 0.0), F.dropout(m, 0.5, training=False)",
        near + "y = x.view(200, 200, 1).expand(200, 200, 3); z = F.dropout1d(y, 0.4); (z == z[..., :1]).all(), near((z == 0).double(), 0.4, 0.02)",
        near + "y = F.alpha_dropout(x, 0.3, True); near((y - 0.25).abs() > 1, 0.3, 0.02), F.feature_alpha_dropout(x.view(50, 50, 4, 4), 0.3, True) * 0",
        near + "y = F.rrelu(-x, 0.1, 0.3, True); near(y, -0.05, 0.003), (y >= -0.0752).all() & (y <= -0.0248).all()",
        "q = m[None, None]; y = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5); y[:2] * 0, F.scaled_dot_product_attention(q, q, q, dropout_p=1.0)",
        near + "y = F.gumbel_softmax(w.log().clamp(min=-5).repeat(500, 1), hard=True); (y.sum(-1) - 1).abs() < 0.01, near((y[::2, 3]), 0.5, 0.16)",
    )


FAMILIES = {"random": (FLOATS, random)}
