"""What models are made of: products, normalisations, activations, losses, embeddings, recurrences, attention."""

import torch
from torch._subclasses.fake_impls import register_op_impl

FEW = ("f32", "f64", "bf16", "f16")


def products(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    t.bind(
        a=r(5, 7),
        b=r(7, 3),
        v=r(7),
        w=r(5),
        x=r(2, 3, 5, 7),
        y=r(2, 3, 7, 4),
        q=r(3, 5, 7),
        p=r(3, 7, 2),
        big=r(17, 37),
        big2=r(37, 33),
        huge=r(131, 1),
        s=r(),
        z=r(0, 7),
        k=r(5, 0),
        m=r(5, 3),
        one=r(1, 1),
        bias=r(3),
        u=r(1, 7, 2),
        l=r(3, 7),
        bl=r(4, 5, 3),
        wide=r(3, 257),
        wide2=r(257, 2),
    )
    t(
        "torch.mm(a, b), torch.mm(a.t().t(), b), torch.mm(b.t(), a.t())",
        "torch.matmul(a, b), torch.matmul(a, v), torch.matmul(v, b), torch.matmul(v, v)",
        "torch.matmul(x, y), torch.matmul(x, b), torch.matmul(a, y), torch.matmul(x, v), torch.matmul(v, y)",
        "torch.bmm(q, p), q @ u, q @ p[:1], torch.bmm(p.transpose(1, 2), q.transpose(1, 2))",
        "torch.mm(big, big2), torch.mm(big[::2], big2[:, 1:]), torch.mm(big2.t(), big.t()), torch.mm(big[:, ::3], big2[::3])",
        "torch.mm(huge, huge.t()), torch.mm(huge.t(), huge), torch.mm(one, one)",
        "torch.mm(z, b), torch.mm(k, k.t()), torch.matmul(k, k.t()), torch.bmm(q[:0], p[:0]), torch.mv(k, k[0])",
        "torch.mm(wide, wide2), torch.mv(wide, wide2[:, 0]), torch.dot(wide[0], wide2[:, 1])",
        "torch.mv(a, v), torch.dot(v, v), torch.vdot(v, v), torch.outer(v, w), torch.inner(a, v), torch.inner(a, l), torch.ger(w, v)",
        "torch.addmm(m, a, b), torch.addmm(bias, a, b, beta=2, alpha=3), torch.addmm(m, a, b, beta=0)",
        "torch.addmv(w, a, v, alpha=2), torch.addr(m, w, bias), torch.baddbmm(p[:, :5], q, p, beta=2), torch.addbmm(m[:, :2], q, p)",
        "F.linear(a, l), F.linear(a, l, bias), F.linear(x, l, bias), F.linear(v, l), F.linear(v, l[0])",
        "F.bilinear(a, m, r, w[:2])",
        "torch.chain_matmul(a, b, m.t())",
        "torch.linalg.multi_dot((a, b, m.t(), w))",
        "torch.matrix_power(a[:, :5], 3), torch.matrix_power(a[:, :5], 0)",
        "torch.einsum('ij,jk->ik', a, b), torch.einsum('ij,jk', a, b), torch.einsum('ij->ji', a), torch.einsum('ij->', a), torch.einsum('ii->i', a[:, :5])",
        "torch.einsum('bhid,bhdj->bhij', x, y), torch.einsum('...ij,...jk->...ik', x, b), torch.einsum('i,j->ij', v, w)",
        "torch.einsum('bij,bjk,kl->bil', q, p, p[0].t()), torch.einsum('bij,kj->bik', q, l), torch.einsum('ij,ij->i', a, a), torch.einsum('ii', a[:, :5])",
        "torch.tensordot(x, y, ((3,), (2,))), torch.tensordot(a, b, 1), torch.tensordot(a, m, ((0,), (0,))), torch.tensordot(w, v, 0)",
        "torch.kron(a, b[:2]), torch.kron(v, w), torch.kron(q, p)",
        "torch.cdist(q, p.transpose(1, 2)), torch.cdist(a, l), torch.cdist(a, l, p=1), torch.cdist(a, l, p=float('inf')), torch.cdist(a, l, p=3), torch.cdist(a, l, p=0)",
        "torch.cdist(big, big2.t()[:, :37], compute_mode='use_mm_for_euclid_dist')",
        "F.pdist(a), F.pdist(a, 1)",
        "F.pairwise_distance(a, a.flip(0)), F.cosine_similarity(a, a.flip(0)), F.cosine_similarity(x, y.transpose(2, 3)[:, :, :1], dim=-1)",
        "torch.cross(m, m.flip(0)), torch.linalg.cross(m, bias[None])",
        "torch.relu(torch.mm(a, b)) * 2, (a @ b).sum(0), (a * 2) @ (b + 1), (a @ b).t() @ w",
        "torch._int_mm(big, big2)",
    )


def normalisations(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    t.bind(
        x=r(2, 6, 5, 7),
        line=r(3, 6, 9),
        m=r(5, 37),
        w=r(6),
        b=r(6),
        mean=r(6),
        var=t.rand(6, low=0.5, high=2),
        w7=r(7),
        b7=r(7),
        w37=r(37),
        one=r(2, 6, 1, 1),
        w57=r(5, 7),
        z=r(0, 37),
        s=r(1, 131),
    )
    t(
        "F.batch_norm(x, mean, var, w, b), F.batch_norm(x, mean, var, eps=1e-3), F.batch_norm(m[:, :6], mean, var, w, None), F.batch_norm(line, mean, var, None, b)",
        "F.batch_norm(x, None, None, w, b, True), F.batch_norm(one.expand(2, 6, 2, 1), None, None, None, None, True)",
        "F.layer_norm(x, (7,), w7, b7), F.layer_norm(x, (5, 7), w57), F.layer_norm(m, (37,), w37), F.layer_norm(m, (37,)), F.layer_norm(z, (37,)), F.layer_norm(s, (131,), None, None, 1e-2)",
        "F.group_norm(x, 3, w, b), F.group_norm(x, 1), F.group_norm(line, 6, w), F.group_norm(x, 2, None, b), F.group_norm(one, 3, w, b)",
        "F.instance_norm(x), F.instance_norm(line, weight=w, bias=b), F.instance_norm(x, mean.clone(), var.clone(), w, b, use_input_stats=False)",
        "F.rms_norm(x, (7,)), F.rms_norm(x, (7,), w7, 1e-3), F.rms_norm(m, (37,), w37), F.rms_norm(x, (5, 7), w57)",
        "F.normalize(x), F.normalize(x, p=1, dim=-1), F.normalize(x * 0, dim=2)",
        "F.softmax(x, 1), F.softmax(x, -1), F.log_softmax(x, 0), F.softmin(x, 2), F.softmax(m, 1), F.log_softmax(s, 1), F.softmax(z, 1), F.softmax(one, 2)",
        "F.softmax(x, 1, dtype=f64), F.log_softmax(m, 1, dtype=f32)",
        "F.softmax(m.masked_fill(m > 0.5, float('-inf')), 1), F.softmax(m.t(), 0), F.softmax(m[:, ::2], 1), F.log_softmax(m * 100, 1)",
        "F.layer_norm(m.t().contiguous().t(), (37,)), F.layer_norm(x.transpose(1, 3), (6,), w, b)",
        "torch.native_layer_norm(m, (37,), w37, None, 1e-5), torch.native_group_norm(x, w, b, 2, 6, 35, 3, 1e-5)",
        "F.local_response_norm(x, 4, 0.1, 0.5, 2)",
    )


ACTIVATIONS = ["relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "softplus", "softsign", "tanhshrink", "logsigmoid", "sigmoid", "tanh", "leaky_relu", "threshold(x,0.1,5)", "rrelu", "glu"]


def activations(t):
    t.bind(x=t.rand(4, 38), e=t.special(), w=t.rand(38), s=t.rand(), z=t.rand(0, 4))
    for name in ACTIVATIONS:
        if "(" in name:
            t(f"F.{name}, F.{name.replace('x', 'e', 1)}")
        else:
            # PyTorch's oneDNN gives NaN for the infinities that `gelu` has limits at.
            ends = "" if name in ("glu", "gelu") else f", F.{name}(e)"
            extra = ends + ("" if name == "glu" else f", F.{name}(s)")
            t(f"F.{name}(x){extra}, F.{name}(z), F.{name}(x[:, ::2][:, :18])")
    t(
        "F.gelu(x, approximate='tanh'), F.gelu(e, approximate='tanh')",
        "F.elu(x, 2.0), F.celu(x, 0.5), F.leaky_relu(x, 0.3), F.hardtanh(x, -0.5, 2), F.softplus(x, 2, 3), F.hardshrink(x, 1), F.softshrink(x, 0.2)",
        "F.prelu(x, w[:1]), F.prelu(x, w), F.prelu(e, s[None]), F.prelu(x[:, :, None].expand(4, 38, 2), w)",
        "F.glu(x, 0), F.glu(x, 1), torch.clamp(x, 0, 6), F.silu(x) * x, F.logsigmoid(x * 50)",
        "F.relu(x.t()), F.gelu(x.t()[::3]), torch.sigmoid(-x), torch.logit(torch.sigmoid(x))",
    )


def losses_alone(mode, _, log_probabilities, targets, *rest):
    """PyTorch does not say itself what shapes the losses of sequences have, which it wants to know to export them."""
    t, n, _ = log_probabilities.shape
    with mode:
        return log_probabilities.new_empty(n), log_probabilities.new_empty(n, t, 2 * targets.shape[-1] + 1)


register_op_impl([torch.ops.aten._ctc_loss.Tensor, torch.ops.aten._ctc_loss.default])(losses_alone)


def losses(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    t.bind(
        x=r(5, 7),
        y=r(5, 7),
        p=t.rand(5, 7, low=0.1, high=0.9),
        q=t.rand(5, 7, low=0.1, high=0.9),
        w=t.rand(5, 7, low=0.1, high=1),
        c=t.ints(0, 7, 5),
        cw=t.rand(7, low=0.5, high=2),
        sign=t.ints(0, 2, 5, 7) * 2 - 1,
        sign1=t.ints(0, 2, 5) * 2 - 1,
        img=r(2, 4, 3, 5),
        ci=t.ints(0, 4, 2, 3, 5),
        ml=t.ints(0, 7, 5, 7),
        z=r(0, 7),
        lp=r(9, 4, 6).log_softmax(2),
        labels=t.ints(1, 6, 4, 3),
        flat=t.ints(1, 6, 6),
        steps=torch.tensor([9, 7, 2, 9]),
        lengths=torch.tensor([3, 2, 3, 0]),
    )
    for reduction in ("mean", "sum", "none"):
        k = f"reduction='{reduction}'"
        t(
            f"F.ctc_loss(lp, labels, steps, lengths, {k}), F.ctc_loss(lp, labels, steps, lengths, blank=2, zero_infinity=True, {k})",
            f"F.ctc_loss(lp, labels * 0 + 3, (9, 9, 9, 5), (3, 2, 1, 3), {k}), F.ctc_loss(lp, flat, (9, 8, 9, 5), (2, 1, 0, 3), {k}), F.ctc_loss(lp[:, 0], flat[:3], (9,), (3,), {k})",
            f"F.mse_loss(x, y, {k}), F.l1_loss(x, y, {k}), F.smooth_l1_loss(x, y, {k}), F.smooth_l1_loss(x, y, beta=0.5, {k}), F.huber_loss(x, y, {k}, delta=0.7)",
            f"F.binary_cross_entropy(p, q, {k}), F.binary_cross_entropy(p, q, w, {k})",
            f"F.binary_cross_entropy_with_logits(x, q, {k}), F.binary_cross_entropy_with_logits(x, q, w, pos_weight=cw, {k})",
            f"F.cross_entropy(x, c, {k}), F.cross_entropy(x, c, cw, {k}), F.cross_entropy(x, c, ignore_index=2, {k})",
            f"F.cross_entropy(x, c, cw, label_smoothing=0.1, {k}), F.cross_entropy(x, p, {k}), F.cross_entropy(x, p, cw, label_smoothing=0.2, {k})",
            f"F.cross_entropy(img, ci, {k}), F.cross_entropy(img, ci, cw[:4], ignore_index=1, {k})",
            f"F.nll_loss(x, c, {k}), F.nll_loss(x, c, cw, ignore_index=3, {k}), F.nll_loss(img, ci, {k})",
            f"F.kl_div(x, p, {k}), F.kl_div(x, y, log_target=True, {k})",
            f"F.poisson_nll_loss(x, p, {k}), F.poisson_nll_loss(p, q, log_input=False, full=True, {k})",
            f"F.gaussian_nll_loss(x, y, p, {k}), F.gaussian_nll_loss(x, y, p, full=True, {k})",
            f"F.hinge_embedding_loss(x, sign, {k}), F.margin_ranking_loss(x, y, sign, margin=0.5, {k}), F.soft_margin_loss(x, sign, {k})",
            f"F.cosine_embedding_loss(x, y, sign1, margin=0.2, {k}), F.triplet_margin_loss(x, y, p, {k}), F.triplet_margin_loss(x, y, p, swap=True, p=1, {k})",
            f"F.multi_margin_loss(x, c, {k}), F.multi_margin_loss(x, c, p=2, margin=0.5, weight=cw, {k}), F.multilabel_margin_loss(x, ml, {k}), F.multilabel_soft_margin_loss(x, q, {k})",
            f"F.mse_loss(z, z, {k}), F.l1_loss(z, z, {k})",
            f"F.l1_loss(x.t(), y.t(), {k})",
        )


def embeddings(t):
    t.bind(
        w=t.rand(11, 6),
        i=t.ints(0, 11, 3, 5),
        j=t.ints(0, 11, 9),
        none=t.ints(0, 1, 0),
        k=t.ints(0, 11, 4, dtype=torch.int32),
        weights=t.rand(9, low=0.5, high=1),
        per=t.rand(3, 5),
    )
    t(
        "F.embedding(i, w), F.embedding(j, w, padding_idx=2), F.embedding(none, w), F.embedding(k, w), F.embedding(i[:, ::2].t(), w)",
        "F.embedding(i, w.t().contiguous().t())",
        "F.one_hot(i, 11)",
        "w[i], w.index_select(0, j)",
    )
    for mode in ("sum", "mean", "max"):
        t(
            f"F.embedding_bag(i, w, mode='{mode}'), F.embedding_bag(i, w, mode='{mode}', padding_idx=3)",
            f"F.embedding_bag(j, w, torch.tensor([0, 4, 4, 7]), mode='{mode}')",
            f"F.embedding_bag(j, w, torch.tensor([0, 2, 9]), mode='{mode}', include_last_offset=True)",
        )
    t(
        "F.embedding_bag(j, w, torch.tensor([0, 3]), mode='sum', per_sample_weights=weights), F.embedding_bag(i, w, mode='sum', per_sample_weights=per)"
    )


def recurrent(t):
    r = lambda *sizes: t.rand(*sizes, low=-1, high=1)
    t.bind(
        x=r(5, 2, 3),
        h=r(2, 2, 4),
        c=r(2, 2, 4),
        **{
            f"{kind}{n}": x
            for kind, gates in (("l", 16), ("g", 12), ("r", 4))
            for n, x in enumerate(
                [r(gates, 3), r(gates, 4), r(gates), r(gates), r(gates, 4), r(gates, 4), r(gates), r(gates)]
            )
        },
        xc=r(2, 3),
        hc=r(2, 4),
        one=r(1, 1, 3),
    )
    for kind, function in (("l", "lstm"), ("g", "gru"), ("r", "rnn_tanh"), ("r", "rnn_relu")):
        state = (lambda s: f"(h{s}, c{s})") if kind == "l" else (lambda s: f"h{s}")
        first = ", ".join(f"{kind}{n}" for n in range(4))
        second = ", ".join(f"{kind}{n}" for n in range(4, 8))
        back = ", ".join(f"{kind}{n}.flip(0)" for n in range(4))
        t(
            f"torch.{function}(x, {state('[:1]')}, [{first}], True, 1, 0.0, False, False, False)",
            f"torch.{function}(x, {state('')}, [{first}, {second}], True, 2, 0.0, False, False, False)",
            f"torch.{function}(x, {state('')}, [{first}, {back}], True, 1, 0.0, False, True, False)",
            f"torch.{function}(x.transpose(0, 1), {state('[:1]')}, [{first}], True, 1, 0.0, False, False, True)",
            f"torch.{function}(x, {state('[:1]')}, [{kind}0, {kind}1], False, 1, 0.0, False, False, False)",
            f"torch.{function}(one, {state('[:1, :1]')}, [{first}], True, 1, 0.0, False, False, False)",
        )
    t(
        "torch.lstm_cell(xc, (hc, hc), l0, l1, l2, l3)",
        "torch.gru_cell(xc, hc, g0, g1, g2, g3)",
        "torch.rnn_tanh_cell(xc, hc, r0, r1, r2, r3), torch.rnn_relu_cell(xc, hc, r0, r1)",
    )


def attention(t):
    r = lambda *sizes: t.rand(*sizes, low=-2, high=2)
    t.bind(
        q=r(2, 4, 5, 8),
        k=r(2, 4, 7, 8),
        v=r(2, 4, 7, 6),
        k2=r(2, 2, 7, 8),
        v2=r(2, 2, 7, 8),
        m=t.rand(5, 7, dtype=torch.bool) | (r(5, 7) > -5).logical_and(torch.eye(5, 7, dtype=torch.bool)),
        f=r(2, 1, 5, 7),
        one=r(1, 1, 1, 1),
        q3=r(2, 37, 16),
        k3=r(2, 41, 16),
        long=r(1, 2, 131, 4),
    )
    t(
        "F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, k)",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(k, k, v, is_causal=True)",
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m), F.scaled_dot_product_attention(q, k, v, attn_mask=f)",
        "F.scaled_dot_product_attention(q, k, v, scale=0.3), F.scaled_dot_product_attention(q, k2, v2, enable_gqa=True), F.scaled_dot_product_attention(q, k2, v2, is_causal=True, enable_gqa=True)",
        "F.scaled_dot_product_attention(q3, k3, k3), F.scaled_dot_product_attention(one, one, one), F.scaled_dot_product_attention(long, long, long, is_causal=True)",
        "F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(5, 7, dtype=torch.bool))",
        "torch.softmax(q @ k.transpose(-2, -1) / 8 ** 0.5 + f, -1) @ v",
        "F.scaled_dot_product_attention(q[:, :, :, ::2], k[:, :, :, ::2], v[:, :, :, ::2]), F.scaled_dot_product_attention(q[:, :, :0], k, v)",
        "torch.softmax((q @ k.mT).masked_fill(~m, float('-inf')), -1)",
    )
    # What modules become where gradients are off; masks say what is hidden.
    t.bind(
        e=r(2, 5, 8),
        w3=r(24, 8) / 4,
        b3=r(24) / 4,
        wo=r(8, 8) / 4,
        bo=r(8) / 4,
        g=r(8),
        w_up=r(12, 8) / 4,
        b_up=r(12) / 4,
        w_down=r(8, 12) / 4,
        rows=torch.ones(5, 5, dtype=torch.bool).triu(1),
        ends=torch.tensor([[False, False, False, True, True], [False] * 4 + [True]]),
        hidden=t.rand(2, 2, 5, 5, dtype=torch.bool) & ~torch.eye(5, dtype=torch.bool),
    )
    for mask in ("None", "rows, mask_type=0", "ends, mask_type=1", "hidden, mask_type=2"):
        given = f", mask={mask}" if mask != "None" else ""
        t(
            f"torch._native_multi_head_attention(e, e, e, 8, 2, w3, b3, wo, bo{given})",
            f"torch._native_multi_head_attention(e, e, e, 8, 2, w3, b3, wo, bo, average_attn_weights=False{given})",
        )
        # PyTorch rounds to f16 after each step: its own results are further from the truth than what is tolerated.
        for gelu, first in ((True, False), (False, True)) if t.type != "f16" else ():
            norms = "1e-5, g, bo, g + 1, bo, w_up, b_up, w_down, bo"
            t(f"torch._transformer_encoder_layer_fwd(e, 8, 2, w3, b3, wo, bo, {gelu}, {first}, {norms}{given})")



FAMILIES = {
    "products": (("f32", "f64", "bf16", "f16", "i64", "i8"), products),
    "normalisations": (FEW, normalisations),
    "activations": (FEW, activations),
    "losses": (("f32", "f64"), losses),
    "embeddings": (FEW, embeddings),
    "recurrent": (("f32", "f64"), recurrent),
    "attention": (FEW, attention),
}
