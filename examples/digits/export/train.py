"""Trains the digit classifier of this example and exports it: models/digits.pt2, pictures/*.png and expected.txt.

Data: scikit-learn's bundled copy of the UCI "Optical Recognition of Handwritten Digits" set, 1,797 grey pictures of
8x8 pixels. A fifth of them is held out; the pictures written beside the model come from that fifth, the first few of
each digit, whether or not the model gets them right.

    pip install torch scikit-learn pillow
    python export/train.py

Only this folder needs Python: what it writes is committed, and the Rust program reads nothing else.
"""

import random
import sys
from pathlib import Path

import numpy
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "build-support"))
from aoti_export import without_folders  # noqa: E402

SEED = 20260
EPOCHS = 25
BATCH = 64
PICTURES = 12
HERE = Path(__file__).resolve().parent.parent


class Digits(nn.Module):
    """Two convolutions, pooling between them, and two linear layers. Input: `[batch, 1, 8, 8]`, 0 white to 1 ink."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10)
        )

    def forward(self, image):
        return self.classifier(self.features(image))


class Classifier(nn.Module):
    """What is deployed: the trained network and the softmax behind it."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        return torch.softmax(self.network(image), dim=1)


def train(images, labels):
    network = Digits()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        schedule.step()
    return network.eval()


def write_pictures(images, labels, classifier):
    """Writes the first held-out picture of each digit, then of as many digits again as are still wanted.

    And, in the Rust program's own words, what PyTorch says of them.
    """
    folder = HERE / "pictures"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    lines, right = [], 0
    for count in range(PICTURES):
        label, nth = count % 10, count // 10
        row = (labels == label).nonzero()[nth].item()
        pixels = (images[row, 0] * 255).round().to(torch.uint8).numpy()
        name = f"{label}-{'abc'[nth]}.png"
        Image.fromarray(pixels).save(folder / name)
        with torch.no_grad():
            probability, class_ = classifier(images[row : row + 1])[0].max(0)
        right += class_.item() == label
        lines.append(f"{name:<12} {class_.item()}  {100 * probability.item():5.1f} %\n")
    lines = sorted(lines) + [f"{right} of {PICTURES} right\n"]
    (HERE / "expected.txt").write_text("".join(lines))


def main():
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    # One order of additions, so that the same release of torch trains the same weights anywhere.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    # Grey levels go through 8 bits, as they will when the pictures are read from PNG files.
    images = torch.tensor(digits.images / 16 * 255).round().to(torch.float32)[:, None] / 255
    labels = torch.tensor(digits.target)
    rows = train_test_split(range(len(labels)), test_size=0.2, random_state=SEED, stratify=digits.target)
    train_rows, test_rows = (torch.tensor(part) for part in rows)

    network = train(images[train_rows], labels[train_rows])
    classifier = Classifier(network).eval()
    with torch.no_grad():
        right = (classifier(images[test_rows]).argmax(1) == labels[test_rows]).sum().item()
    print(f"{right} of {len(test_rows)} held-out pictures right: {100 * right / len(test_rows):.1f} %")

    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(classifier, (images[test_rows[:2]],), dynamic_shapes=({0: batch},))
    (HERE / "models").mkdir(exist_ok=True)
    torch.export.save(without_folders(program), HERE / "models" / "digits.pt2")
    write_pictures(images[test_rows], labels[test_rows], classifier)


if __name__ == "__main__":
    main()
