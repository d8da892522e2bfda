"""Trains the network of this example and exports it: models/vowels.pt2 and expected.txt.

Data: artificial speech. Each class is a vowel, a sum of harmonics of a voice that glides, shaped by the vowel's two lowest formants (Peterson and
Barney, 1952, men's averages), in noise. The network hears a stream in pieces of 10 ms: it takes the next 160 samples, computes the log-mel
features of the last 25 ms, and a recurrent layer follows them. The samples that are still needed and the layer's state are buffers that the model mutates.

    pip install torch safetensors
    python export/train.py
"""

import math
import sys
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE.parent.parent / "build-support"))
from aoti_export import export  # noqa: E402

SEED = 20260
RATE = 16000
HOP, WINDOW, FFT, MELS, WIDTH = 160, 400, 512, 24, 32
VOWELS = {"i": (270, 2290), "a": (730, 1090), "u": (300, 870)}
STEPS, BATCH, PIECES = 150, 24, 30


def mel_filters():
    """`[FFT // 2 + 1, MELS]`: triangles whose corners are equally far from each other on the mel scale."""
    mel = lambda hertz: 2595 * math.log10(1 + hertz / 700)
    corners = torch.linspace(mel(60), mel(RATE / 2), MELS + 2, dtype=torch.float64)
    corners = 700 * (10 ** (corners / 2595) - 1)
    bins = torch.arange(FFT // 2 + 1, dtype=torch.float64)[:, None] * RATE / FFT
    up = (bins - corners[:-2]) / (corners[1:-1] - corners[:-2])
    down = (corners[2:] - bins) / (corners[2:] - corners[1:-1])
    return torch.minimum(up, down).clamp(min=0).float()


class Features(nn.Module):
    """Log-mel features of windows `[..., WINDOW]`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("filters", mel_filters(), persistent=False)

    def forward(self, samples):
        spectrum = torch.fft.rfft(samples * self.window, n=FFT)
        power = spectrum.real.square() + spectrum.imag.square()
        return torch.log(power @ self.filters + 1e-3)


class Network(nn.Module):
    """A recurrent layer over features, and the vowel's logits after each piece."""

    def __init__(self):
        super().__init__()
        self.features = Features()
        self.cell = nn.GRUCell(MELS, WIDTH)
        self.classify = nn.Linear(WIDTH, len(VOWELS))

    def forward(self, sound):
        """A whole sound `[batch, samples]`, for training: the logits after its last piece."""
        hidden = sound.new_zeros(sound.shape[0], WIDTH)
        for window in self.features(sound.unfold(1, WINDOW, HOP)).unbind(1):
            hidden = self.cell(window, hidden)
        return self.classify(hidden)


class Stream(nn.Module):
    """What is deployed: one piece of one stream, with what came before in its buffers."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.register_buffer("heard", torch.zeros(WINDOW))
        self.register_buffer("hidden", torch.zeros(1, WIDTH))

    def forward(self, samples):
        heard = torch.cat([self.heard[HOP:], samples])
        self.heard.copy_(heard)
        features = self.network.features(heard)
        hidden = self.network.cell(features[None], self.hidden)
        self.hidden.copy_(hidden)
        return {"vowel": torch.softmax(self.network.classify(hidden)[0], dim=0), "features": features}


def speak(formants, samples, generator):
    """A voice of 100 to 180 Hz that glides, in noise. `src/main.rs` has the same without chance."""
    pitch, glide, noise = torch.rand(3, generator=generator).tolist()
    time = torch.arange(samples) / RATE
    phase = 2 * math.pi * ((100 + 80 * pitch) * time + 20 * (glide - 0.5) * time**2)
    sound = 0.02 * noise * torch.randn(samples, generator=generator)
    for harmonic in range(1, 30):
        hertz = harmonic * (100 + 80 * pitch)
        level = sum(1 / (1 + ((hertz - formant) / 90) ** 2) for formant in formants)
        sound += 0.1 * level * torch.sin(harmonic * phase)
    return sound


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(SEED)
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    vowels = list(VOWELS.values())
    for _ in range(STEPS):
        labels = torch.randint(len(vowels), (BATCH,), generator=generator)
        sound = torch.stack([speak(vowels[label], WINDOW + PIECES * HOP, generator) for label in labels])
        loss = nn.functional.cross_entropy(network(sound), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
    stream = Stream(network).eval()
    export(stream, {"samples": speak(vowels[0], HOP, generator)}, HERE / "models" / "vowels.pt2")
    check(stream)


def check(stream):
    """Says the vowels as `src/main.rs` does, and writes what the network hears."""
    lines = []
    with torch.no_grad():
        for name, formants in VOWELS.items():
            stream.heard.zero_()
            stream.hidden.zero_()
            pieces = 40
            time = torch.arange(pieces * HOP, dtype=torch.float64) / RATE
            sound = torch.zeros_like(time)
            for harmonic in range(1, 30):
                level = sum(1 / (1 + ((harmonic * 130 - formant) / 90) ** 2) for formant in formants)
                sound += 0.1 * level * torch.sin(2 * math.pi * harmonic * 130 * time)
            for piece in sound.float().split(HOP):
                vowel = stream(piece)["vowel"]
            lines.append(f"said {name}, heard {list(VOWELS)[vowel.argmax()]} ({100 * vowel.max():.0f} %)\n")
    (HERE / "expected.txt").write_text("".join(lines))
    print("".join(lines))


if __name__ == "__main__":
    main()
