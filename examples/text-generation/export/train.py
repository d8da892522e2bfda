"""Trains a small decoder on sentences made from templates, and exports it as two programs: one for prompts, one for a step.

    python export/train.py

Writes tokenizer.json, models/prefill.pt2, models/decode.pt2 and expected.txt. Needs torch and tokenizers; takes about a minute.
"""

import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "build-support"))
from aoti_export import without_folders  # noqa: E402

HERE = Path(__file__).parent.parent
WIDTH, HEADS, LAYERS, LENGTH, VOCABULARY = 64, 4, 2, 128, 384
END = "<|end|>"

PEOPLE = ["the baker", "a sailor", "the old teacher", "my sister", "the gardener", "a young painter", "the doctor"]
PLACES = ["the harbour", "the market", "the garden", "the station", "the library", "the bridge"]
TIMES = ["In the morning", "After lunch", "Late in the evening", "On Sunday", "When the rain stopped", "Before the storm"]
ACTS = [
    ("walked to {place}", "looked for a quiet place to sit"),
    ("ran to {place}", "found that everybody had left"),
    ("waited at {place}", "counted the birds on the roof"),
    ("came back from {place}", "told us what had happened there"),
]
ENDINGS = [
    "It was a long day, but nobody was tired.",
    "The wind was cold and the sky was clear.",
    "Nobody knew what to say, so they said nothing.",
    "There was bread on the table and tea in the pot.",
]


def story(draw):
    who, place = draw.choice(PEOPLE), draw.choice(PLACES)
    went, then = draw.choice(ACTS)
    went = went.format(place=place)
    first = f"{draw.choice(TIMES)} {who} {went} and {then}."
    second = f"At {place} {who} met {draw.choice([p for p in PEOPLE if p != who])}, who had been there before."
    return " ".join([first, second, draw.choice(ENDINGS)])


def rotated(x, positions):
    """Rotary embedding: pairs of numbers turned by angles that grow with the position."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)
        for name in ["keys", "values"]:
            self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS), persistent=False)

    def forward(self, x, positions, cached):
        batch, length, _ = x.shape
        split = self.qkv(self.before_attention(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = rotated(split[0], positions), rotated(split[1], positions), split[2]
        if cached:
            self.keys.index_copy_(2, positions, k)
            self.values.index_copy_(2, positions, v)
            seen = torch.arange(LENGTH)[None, :] <= positions[:, None]
            mixed = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, tokens, positions, cached=True):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, positions, cached)
        # Generation asks for what follows the last token only.
        x = self.norm(x[:, -1] if cached else x)
        return {"logits": x @ self.embedding.weight.T}


def tokenizer_of(stories):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=8,
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    return tokenizer


def train(model, tokens):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    steps, length = 200, 96
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for step in range(steps):
        starts = torch.randint(len(tokens) - length - 1, (24,))
        rows = torch.stack([tokens[start : start + length + 1] for start in starts])
        logits = model(rows[:, :-1], torch.arange(length), cached=False)["logits"]
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)


def generate(model, tokenizer, prompt, count):
    """What the example prints: the most likely token each time."""
    ids = tokenizer.encode(prompt).ids
    logits = model(torch.tensor([ids]), torch.arange(len(ids)))["logits"]
    position, made = len(ids), []
    while len(made) < count:
        token = int(logits.argmax())
        if token == tokenizer.token_to_id(END):
            break
        made.append(token)
        logits = model(torch.tensor([[token]]), torch.tensor([position]))["logits"]
        position += 1
    return tokenizer.decode(ids + made)


def main():
    draw = random.Random(7)
    torch.manual_seed(7)
    torch.set_num_threads(1)
    stories = [story(draw) for _ in range(3000)]
    tokenizer = tokenizer_of(stories)
    tokenizer.save(str(HERE / "tokenizer.json"), pretty=False)
    end = tokenizer.token_to_id(END)
    tokens = torch.tensor([id for text in stories for id in [*tokenizer.encode(text).ids, end]])
    model = Decoder()
    train(model, tokens)
    model.eval()
    with torch.no_grad():
        length = torch.export.Dim("prompt", min=1, max=LENGTH)
        prompt = (torch.zeros(1, 7, dtype=torch.long), torch.arange(7))
        prefill = torch.export.export(model, prompt, dynamic_shapes=({1: length}, {0: length}))
        torch.export.save(without_folders(prefill), HERE / "models/prefill.pt2")
        step = (torch.zeros(1, 1, dtype=torch.long), torch.arange(1))
        torch.export.save(without_folders(torch.export.export(model, step)), HERE / "models/decode.pt2")
        expected = generate(model, tokenizer, "In the morning", 80)
    (HERE / "expected.txt").write_text(expected + "\n")
    print(expected)


main()
