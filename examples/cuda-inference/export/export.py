"""Writes ../models/encoder.pt2: a small transformer encoder of bytes in bfloat16, with random weights. Needs torch."""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "build-support"))
from aoti_export import without_folders  # noqa: E402

HERE = Path(__file__).resolve().parents[1]
WIDTH, HEADS, LAYERS, LENGTH = 64, 4, 2, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.before_attention(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers, self.end = nn.Sequential(*(Layer() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

    def forward(self, text):
        x = self.bytes(text) + self.places.weight
        return F.normalize(self.end(self.layers(x)).float().mean(1), dim=-1)


torch.manual_seed(0)
text = torch.zeros(2, LENGTH, dtype=torch.int64)
program = torch.export.export(
    Encoder().to(torch.bfloat16).eval(), (text,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=1024)},)
)
torch.export.save(without_folders(program), HERE / "models" / "encoder.pt2")
