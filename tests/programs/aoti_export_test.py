"""Tests of build-support/aoti_export.py, for a Python with PyTorch: `python aoti_export_test.py FOLDER`.

Prints a line for each; the files that are written into the folder are for `cargo aoti verify`.
"""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build-support"))
from aoti_export import ExportError, export  # noqa: E402


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 3))

    def forward(self, features, scale=None):
        return {"classes": torch.softmax(self.layers(features), dim=-1)}


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Fixed(nn.Module):
    def forward(self, x):
        return x.view(6, -1)


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, tokens, weights):
        return (self.table(tokens) * weights[:, :, None]).sum(1)


def refused(words, model, inputs, **options):
    try:
        export(model, inputs, "never.pt2", **options)
    except ExportError as error:
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


def main(folder):
    features = {"features": torch.randn(2, 4)}
    batch = {"dims": {"features": {0: "batch"}}, "bounds": {"batch": (1, 32)}}
    table = export(Classifier(), features, f"{folder}/classifier.pt2", check_sizes={"batch": [1, 5, 32]}, **batch)
    assert 'dims = { features_d0 = "batch" }' in table, table
    table = export(Counter(), (torch.ones(3),), f"{folder}/counter.pt2", outputs=["twice"])
    assert 'outputs = ["twice"]' in table, table
    inputs = {"tokens": torch.tensor([[1, 9, 3], [0, 2, 8]]), "weights": torch.rand(2, 3)}
    sizes = {0: "batch", 1: "length"}
    table = export(Lookup(), inputs, f"{folder}/lookup.pt2", dims={"tokens": sizes, "weights": sizes})
    assert 'dims = { tokens_d0 = "batch", tokens_d1 = "length" }' in table, table

    refused("Python branches on a value", Branch(), {"x": torch.ones(3)})
    refused("fixes this size", Fixed(), {"x": torch.ones(2, 3)}, dims={"x": {0: "rows"}})
    refused("do not fit `forward", Classifier(), {"pixels": torch.ones(1)})
    refused("needs 2 or more", Classifier(), {"features": torch.ones(1, 4)}, dims={"features": {0: "batch"}})
    refused("outside of 4 to 8", Classifier(), features, dims=batch["dims"], bounds={"batch": (4, 8)})
    refused("no name in `dims`", Classifier(), features, bounds={"batch": (1, 8)})
    refused("there is no axis 2", Classifier(), features, dims={"features": {2: "batch"}})
    refused("has 2 names; the model has 1 outputs", Classifier(), features, outputs=["a", "b"])
    with torch.autocast("cpu"):
        refused("torch.autocast is active", Classifier(), features)


if __name__ == "__main__":
    main(sys.argv[1])
