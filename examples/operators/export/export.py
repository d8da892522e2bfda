"""Writes ../models/compressor.pt2 and ../expected.txt: a compressor of sounds over two operators of its own.

    pip install torch
    python export/export.py
"""

import math
import pathlib

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parents[1]
CHANNELS, SAMPLES = 2, 4000


@torch.library.custom_op("sound::envelope", mutates_args=())
def envelope(x: torch.Tensor, attack: float, release: float) -> torch.Tensor:
    level, levels = x.new_zeros(x.shape[:-1]), []
    for sample in x.abs().unbind(-1):
        factor = torch.where(sample > level, attack, release)
        level = level + factor * (sample - level)
        levels.append(level)
    return torch.stack(levels, -1)


@envelope.register_fake
def _(x, attack, release):
    return torch.empty_like(x)


@torch.library.custom_op("sound::soft_clip", mutates_args=())
def soft_clip(x: torch.Tensor, drive: float = 1.0) -> torch.Tensor:
    y = x * drive
    return y / (1 + y.abs())


@soft_clip.register_fake
def _(x, drive=1.0):
    return torch.empty_like(x)


class Compressor(nn.Module):
    def forward(self, sound):
        level = torch.ops.sound.envelope(sound, 0.02, 0.002)
        gain = (0.25 / level.clamp(min=0.05)).clamp(max=2.0) ** 0.75
        return {"clipped": torch.ops.sound.soft_clip(sound * gain, drive=1.5)}


def sound():
    def sample(channel, time):
        return (1 << (4 * time // SAMPLES)) / 8 * math.sin(0.05 * (channel + 1) * time)

    return torch.tensor([[sample(c, t) for t in range(SAMPLES)] for c in range(CHANNELS)])


def loudness(channel):
    return " ".join(f"{q.double().square().mean().sqrt():.3f}" for q in channel.chunk(4))


x = sound()
sizes = {0: torch.export.Dim("channels", min=1, max=64), 1: torch.export.Dim("samples", min=1, max=1 << 20)}
program = torch.export.export(Compressor().eval(), (x,), dynamic_shapes=(sizes,))
(HERE / "models").mkdir(exist_ok=True)
torch.export.save(program, HERE / "models" / "compressor.pt2")
y = Compressor()(x)["clipped"]
lines = [f"channel {c}: {loudness(x[c])} -> {loudness(y[c])}\n" for c in range(CHANNELS)]
(HERE / "expected.txt").write_text("".join(lines))
