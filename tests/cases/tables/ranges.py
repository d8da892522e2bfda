"""Indices beyond an axis, which must be errors and read or write nothing."""

import torch

# Each with an index `i`, which is good from 0 to 4; those that count from the end take -5 too.
FROM_BOTH_ENDS = (
    "x[i]",
    "x[:, i]",
    "x[i, i]",
    "torch.take(x, i + 20 * i.sign())",
    "torch.index_put(x, (i,), u)",
    "torch.index_put(x, (i, i), u[:, 0], accumulate=True)",
    "torch.put(x, i + 20 * i.sign(), u[:, 0], accumulate=True)",
    "torch.index_fill(x, 0, i, 1)",
    "x[:2, i].sum(0)",
    "torch.relu(x)[i] + 1",
)
FROM_ZERO = (
    "torch.gather(x, 0, i[:, None])",
    "torch.gather(x, 1, i[:, None].expand(2, 5))",
    "torch.index_select(x, 0, i)",
    "torch.index_add(x, 0, i, u)",
    "torch.index_copy(x, 1, i, u.t())",
    "torch.index_reduce(x, 0, i, u, 'amax')",
    "torch.scatter(x, 0, i[:, None], u)",
    "torch.scatter_add(x, 0, i[:, None].expand(2, 5), u)",
    "torch.scatter_reduce(x, 1, i[:, None], u, 'prod')",
    "F.embedding(i, x)",
    "F.embedding_bag(i, x, torch.tensor([0, 1]), mode='sum')",
    "F.nll_loss(u, i)",
    "F.cross_entropy(u, i)",
    "F.multi_margin_loss(u, i)",
    "F.one_hot(i, 5)",
)


def ranges(t):
    t.bind(x=t.rand(5, 5), u=t.rand(2, 5))
    for text in FROM_BOTH_ENDS:
        t.refuse(text, torch.tensor([4, 0]), (torch.tensor([0, 5]), torch.tensor([-6, 0])))
    for text in FROM_ZERO:
        t.refuse(text, torch.tensor([4, 0]), (torch.tensor([0, 5]), torch.tensor([-1, 0])))


FAMILIES = {"ranges": (("f32",), ranges)}
