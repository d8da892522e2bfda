"""Exports `peaks.pt2`: a program that calls an operator whose results are as long as its function finds them.

    python tests/models/peaks.py
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build-support"))
from aoti_export import without_folders  # noqa: E402


@torch.library.custom_op("sound::peaks", mutates_args=())
def peaks(x: torch.Tensor, level: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of the elements above a level, and each with its position as a number."""
    at = (x > level).nonzero()[:, 0]
    return at, torch.stack([x[at], at.to(x.dtype)], 1)


@peaks.register_fake
def _(x, level):
    count = torch.library.get_ctx().new_dynamic_size(min=0, max=64)
    return x.new_empty(count, dtype=torch.int64), x.new_empty(count, 2)


class Peaks(torch.nn.Module):
    def forward(self, x):
        at, pairs = torch.ops.sound.peaks(x.abs(), 0.5)
        return at + 1, pairs * 2, x[at], pairs.sum(0)


if __name__ == "__main__":
    path = Path(__file__).resolve()
    program = torch.export.export(Peaks(), (torch.randn(64),))
    torch.export.save(without_folders(program), path.with_suffix(".pt2"))
