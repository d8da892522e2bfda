"""Exports the parts of a transformer block that two ranks compute together, and what one device computes alone.

    python ranks.py

writes `ranks/rank0` and `ranks/rank1`, each a case with the program of one rank. The group is PyTorch's fake one, which exchanges
nothing: the collectives are written to the program and run by whoever runs that.
"""
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from safetensors.torch import save_file
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build-support"))
from aoti_export import without_folders  # noqa: E402

RANKS, WIDTH, HEADS, TOKENS = 2, 16, 4, 6


class Block(nn.Module):
    """Attention and a gated MLP. A rank has some of the heads and of the hidden units, and some of the tokens between the two."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.router = nn.Linear(WIDTH, WIDTH, bias=False)

    def attention(self, x, heads):
        tokens, batch, _ = x.shape
        q, k, v = (part.reshape(tokens, batch, heads, -1).permute(1, 2, 0, 3) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.permute(2, 0, 1, 3).reshape(tokens, batch, -1))

    def mlp(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))

    def forward(self, x):
        x = x + self.attention(self.first(x), HEADS)
        x = x + self.mlp(self.second(x))
        return x, self.router(x), x.amax(0)


class Rank(Block):
    """The same with the tokens of this rank between the two parts, which every rank gets and gives."""

    def forward(self, x):
        group = dist.group.WORLD
        part = funcol.reduce_scatter_tensor(self.attention(self.first(x), HEADS // RANKS), "sum", 0, group)
        mine = x.chunk(RANKS, 0)[dist.get_rank()] + part
        hidden = self.mlp(funcol.all_gather_tensor(self.second(mine), 0, group))
        dist.all_reduce(hidden)
        mine = mine + hidden.chunk(RANKS, 0)[dist.get_rank()]
        whole = funcol.all_gather_tensor(mine, 0, group)
        # Each rank has some of the router's outputs of all tokens, and wants all of its own tokens.
        scores = funcol.all_to_all_single(self.router(whole), None, None, group)
        scores = torch.cat(scores.chunk(RANKS, 0), -1)
        largest = funcol.all_reduce(mine.amax(0), "max", group)
        return whole, funcol.all_gather_tensor(scores, 0, group), funcol.broadcast(largest, 1, group)


def shard(whole, rank):
    """The parameters of a rank: rows of what comes first, columns of what follows."""
    rows = {"gate.weight", "up.weight", "router.weight"}
    columns = {"out.weight", "down.weight"}
    own = {}
    for name, tensor in whole.items():
        if name == "qkv.weight":
            tensor = torch.cat([part.chunk(RANKS, 0)[rank] for part in tensor.chunk(3, 0)])
        elif name in rows or name in columns:
            tensor = tensor.chunk(RANKS, 0 if name in rows else 1)[rank]
        own[name] = tensor.contiguous()
    return own


def main():
    folder = Path(__file__).parent / "ranks"
    torch.manual_seed(0)
    block = Block().eval()
    x = torch.randn(TOKENS, 2, WIDTH)
    with torch.no_grad():
        expected = block(x)
    for rank in range(RANKS):
        dist.init_process_group("fake", rank=rank, world_size=RANKS, store=FakeStore())
        own = shard(block.state_dict(), rank)
        part = Rank().eval()
        for name, tensor in own.items():
            module, leaf = name.rsplit(".", 1)
            setattr(part.get_submodule(module), leaf, nn.Parameter(tensor, requires_grad=False))
        tokens = torch.export.Dim("tokens", min=2, max=64)
        program = torch.export.export(part, (x,), dynamic_shapes=({0: 2 * tokens},))
        target = folder / f"rank{rank}"
        target.mkdir(parents=True, exist_ok=True)
        torch.export.save(without_folders(program), target / "model.pt2")
        save_file({"0": x}, target / "inputs.safetensors")
        save_file({str(k): value.contiguous() for k, value in enumerate(expected)}, target / "outputs.safetensors")
        dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
