"""Trains the denoiser of this example and writes models/denoiser.pt2, noisy.csv and expected.txt.

Data: scikit-learn's bundled copy of the UCI digits, 8x8 grey levels, with noise added. The classifier is that of the example `digits`.

    pip install torch scikit-learn safetensors
    python export/train.py
"""

import sys
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE.parent.parent / "build-support"))
from aoti_export import export  # noqa: E402

SEED = 20260
EPOCHS = 40
BATCH = 64
NOISE = 0.35
ROWS = 40


class Denoiser(nn.Module):
    """Predicts the noise of a picture `[batch, 1, 8, 8]` and takes it away."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 1, 3, padding=1),
        )

    def forward(self, noisy):
        return {"clean": (noisy - self.layers(noisy)).clamp(0, 1)}


def with_noise(images):
    return (images + NOISE * torch.randn_like(images)).clamp(0, 1)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
    labels = torch.tensor(digits.target)
    train, test = train_test_split(range(len(labels)), test_size=0.2, random_state=SEED, stratify=digits.target)

    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for rows in torch.tensor(train)[torch.randperm(len(train))].split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(with_noise(images[rows]))["clean"], images[rows])
            loss.backward()
            optimizer.step()

    # Noisy pictures go through 8 bits, as they are read from the table.
    rows = torch.tensor(test[:ROWS])
    noisy = (with_noise(images[rows]) * 255).round() / 255
    lines = [
        ",".join([str(label.item()), *(str(round(255 * level.item())) for level in picture.flatten())])
        for label, picture in zip(labels[rows], noisy)
    ]
    (HERE / "noisy.csv").write_text("\n".join(lines) + "\n")
    export(
        model,
        {"noisy": noisy[:2]},
        HERE / "models" / "denoiser.pt2",
        dims={"noisy": {0: "batch"}},
        bounds={"batch": (1, 64)},
    )

    classifier = torch.export.load(HERE.parent / "digits" / "models" / "digits.pt2").module()
    with torch.no_grad():
        right = [
            (classifier(pictures).argmax(1) == labels[rows]).sum().item() for pictures in (noisy, model(noisy)["clean"])
        ]
    text = f"with noise: {right[0]} of {ROWS} right\nwithout: {right[1]} of {ROWS} right\n"
    (HERE / "expected.txt").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
