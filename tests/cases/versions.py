"""Writes cases of other PyTorch than that of `generate.py`: small layers as the PyTorch that runs this exports them.

    python tests/cases/versions.py

Puts them into `versions.zip` beside those of other versions: a case is named after the element type and the version. Modules whose
exports differ between versions are worth a case; the archives carry no paths, times or stack traces.
"""

import io
import json
import sys
import warnings
import zipfile
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parent / "versions.zip"
DROPPED = ("data/sample_inputs/", ".data/serialization_id")


def stripped(model):
    """The archive of a program without what tells where and when it was made."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model)) as source, zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as target:
        for entry in source.infolist():
            path = entry.filename.split("/", 1)[1]
            if path.startswith(DROPPED):
                continue
            data = source.read(entry)
            if path.startswith("models/"):
                program = json.loads(data)
                forget(program)
                data = json.dumps(program, separators=(",", ":")).encode()
            target.writestr(zipfile.ZipInfo(f"model/{path}"), data)
    return written.getvalue()


def forget(value):
    if isinstance(value, dict):
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
            value.pop(key, None)
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            forget(part)


def add(name, model, inputs, outputs, labels):
    """Puts a case into the archive, in place of the one of this name."""
    kept = {}
    if ARCHIVE.exists():
        with zipfile.ZipFile(ARCHIVE) as source:
            kept = {entry: source.read(entry) for entry in source.namelist() if not entry.startswith(f"{name}/")}
    case = {"atol": 1e-5, "rtol": 1e-4, "outputs": labels, "sets": []}
    files = {
        "case.json": json.dumps(case, indent=0).encode(),
        "inputs.safetensors": inputs,
        "model.pt2": stripped(model),
        "outputs.safetensors": outputs,
    }
    kept.update({f"{name}/{file}": data for file, data in files.items()})
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for path in sorted(kept):
            target.writestr(zipfile.ZipInfo(path), kept[path], zipfile.ZIP_DEFLATED)


def main():
    warnings.filterwarnings("ignore")
    import torch
    from safetensors.torch import save
    from torch import nn

    class All(nn.Module):
        """The results of a recurrent layer, one after the other."""

        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            y, state = self.layer(x)
            return (y, *state) if isinstance(state, tuple) else (y, state)

    batch = torch.export.Dim("b", min=1, max=64)
    layers = {
        "lstm": (nn.LSTM(6, 5, 2, batch_first=True), torch.randn(3, 7, 6), {0: batch}),
        "lstm_bidirectional": (nn.LSTM(6, 5, 1, bidirectional=True), torch.randn(7, 3, 6), None),
        "lstm_projected": (nn.LSTM(6, 8, 1, proj_size=4), torch.randn(7, 3, 6), None),
    }
    version = ".".join(torch.__version__.split(".")[:2])
    for name, (layer, x, dynamic) in layers.items():
        model = All(layer).eval()
        with torch.no_grad():
            expected = model(x)
            program = torch.export.export(model, (x,), dynamic_shapes=(dynamic,) if dynamic else None, strict=False)
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        outputs = save({str(k): y.contiguous().clone() for k, y in enumerate(expected)})
        labels = [f"{name} of PyTorch {version}, result {k}" for k in range(len(expected))]
        add(f"f32-{version}-{name}", buffer.getvalue(), save({"0": x}), outputs, labels)


if __name__ == "__main__":
    sys.exit(main())
