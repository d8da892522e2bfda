"""Programs whose every open axis has a size of its own for the exporter, where operators require some of them to be the same,
and programs that the exporter guards by Python's arithmetic. Run with sizes that fit and with some that do not."""

import torch

AUTO = torch.export.Dim.AUTO


def related(t):
    def program(text, *sets, **shapes):
        """Of `shapes` like `k="b 4 n 8"`, letters are open; each of `sets` says what they are, the first when exported."""

        def made(sizes):
            return {name: t.rand(*(sizes.get(axis) or int(axis) for axis in shape.split())) for name, shape in shapes.items()}

        dynamic = {name: {k: AUTO for k, axis in enumerate(shape.split()) if not axis.isdigit()} for name, shape in shapes.items()}
        t.sized(text, made(sets[0]), *(made(sizes) for sizes in sets[1:]), dynamic=dynamic)

    # `w` is what has to be `n`.
    lengths = [dict(b=b, q=q, n=n, w=w) for b, q, n, w in [(2, 3, 5, 5), (1, 1, 1, 1), (3, 7, 2, 2), (2, 1, 19, 19), (2, 3, 5, 4)]]
    # PyTorch's fused kernel does not look whether there are as many values as keys, and reads beyond them.
    fitting = lengths[:-1]
    for more in ("", ", is_causal=True", ", scale=0.25"):
        program(f"F.scaled_dot_product_attention(q, k, v{more})", *fitting, q="b 2 q 8", k="b 2 n 8", v="b 2 w 8")
    widths = [dict(s, d=d) for s, d in zip(lengths, (8, 1, 3, 16, 4))]
    program("F.scaled_dot_product_attention(q, k, v)", *widths, q="b 2 q d", k="b 2 n d", v="b 2 w 5")
    program("F.scaled_dot_product_attention(q, k, v, m)", *[dict(s, w=s["n"]) for s in widths], q="b 2 q d", k="b 2 n d", v="b 2 w d", m="b 1 q n")
    # Caches that grow: new rows behind those of before.
    cache = dict(q="b 4 q 8", k="b 2 q 8", v="b 2 q 8", past_k="b 2 n 8", past_v="b 2 w 8")
    program("k = torch.cat([past_k, k], 2); v = torch.cat([past_v, v], 2); F.scaled_dot_product_attention(q, k, v, enable_gqa=True), k, v", *fitting, **cache)
    program("k = torch.cat([past_k, k], 2)[:, :, -4:]; v = torch.cat([past_v, v], 2)[:, :, -4:]; (q @ k.repeat(1, 2, 1, 1).transpose(2, 3)).softmax(-1) @ v.repeat(1, 2, 1, 1)", *lengths, **cache)
    rows = [dict(n=n) for n in (9, 10, 11, 12, 40)]
    program("x[: int(x.shape[0] * 0.7)] + 1", *rows, x="n 3")
    program("x[: int(x.shape[0] ** 0.5)] * 2", *rows, x="n 3")
    program("x + 1 if (x.shape[0] & 7) != 3 else x - 1", *rows, x="n 3")
    ratios = [dict(n=n, w=w) for n, w in [(4, 6), (5, 9), (1, 8), (3, 10), (8, 2)]]
    program("x + 1 if x.shape[0] / x.shape[1] > 0.3 else x - 1", *ratios, x="n w")


FAMILIES = {"related": (("f32",), related)}
