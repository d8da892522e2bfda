"""Trains the tokenizer and the encoder of this example: models/encoder.pt2, tokenizer.json and expected.txt.

Data: sentences that people say to an assistant at home, made from the templates below. Sentences about the same thing are pulled together,
others pushed apart (InfoNCE over the batch).

    pip install torch tokenizers safetensors
    python export/train.py
"""

import itertools
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import nn

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE.parent.parent / "build-support"))
from aoti_export import export  # noqa: E402

SEED = 20260
STEPS = 600
BATCH = 48
VOCABULARY = 600
WIDTH = 64
LENGTH = 32

ROOMS = ["kitchen", "bedroom", "living room", "hall", "bathroom"]
TIMES = ["six", "seven", "half past eight", "noon", "midnight"]
CITIES = ["Paris", "Oslo", "Berlin", "Rome", "Madrid"]
KINDS = ["jazz", "rock", "classical", "folk", "some"]
# For each thing to ask for: what it is about, and ways to say it.
TOPICS = [
    (ROOMS, ["turn on the light in the {}", "switch the {} lamp on", "make it bright in the {}", "it is too dark in the {}"]),
    (ROOMS, ["turn off the light in the {}", "switch the {} lamp off", "make the {} dark", "nobody needs light in the {} any more"]),
    (ROOMS, ["the {} is too cold", "heat the {}", "turn up the heating in the {}", "make the {} warmer please"]),
    (TIMES, ["wake me at {}", "set an alarm for {}", "I have to get up at {}", "ring the bell at {} so that I get up"]),
    (TIMES, ["remind me of the meeting at {}", "put the appointment at {} into my calendar", "I meet Anna at {} do not let me forget"]),
    (CITIES, ["will it rain in {}", "how is the weather in {}", "do I need an umbrella in {}", "what is the forecast for {}"]),
    (CITIES, ["book a train to {}", "I want to travel to {}", "how do I get to {}", "find me a ticket to {}"]),
    (KINDS, ["play {} music", "I want to hear {} songs", "put on a {} record", "let me listen to {} tunes"]),
]
# What the program searches, and asks.
LINES = (HERE / "sentences.txt").read_text().splitlines()
QUESTIONS = ["how is the weather tomorrow", "make it bright in here", "I have to get up early", "let me hear something"]


class Encoder(nn.Module):
    """Token numbers `[batch, length]`, 0 behind the end, to a row of length 1 for each sentence."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        is_padding = tokens == 0
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.norm(self.layers(x, src_key_padding_mask=is_padding))
        weight = (~is_padding).to(x.dtype)[:, :, None]
        mean = (x * weight).sum(1) / weight.sum(1).clamp(min=1)
        return {"embedding": nn.functional.normalize(mean, dim=1)}


def make_tokenizer(sentences):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=["[PAD]", "[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.enable_padding()
    tokenizer.enable_truncation(LENGTH)
    return tokenizer


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    everything = [template.format(thing) for things, templates in TOPICS for thing, template in itertools.product(things, templates)]
    tokenizer = make_tokenizer(everything + LINES + QUESTIONS)
    tokenizer.save(str(HERE / "tokenizer.json"))
    encode = lambda lines: torch.tensor([encoding.ids for encoding in tokenizer.encode_batch(lines)])

    model = Encoder(tokenizer.get_vocab_size())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        topics = [random.randrange(len(TOPICS)) for _ in range(BATCH)]
        pairs = [[random.choice(TOPICS[topic][1]).format(random.choice(TOPICS[topic][0])) for topic in topics] for _ in range(2)]
        a, b = (model(encode(lines))["embedding"] for lines in pairs)
        same = torch.tensor([[float(x == y) for y in topics] for x in topics])
        loss = nn.functional.cross_entropy(a @ b.T / 0.1, same / same.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")

    tokens = encode(LINES[:3])
    sizes = {0: "batch", 1: "length"}
    bounds = {"batch": (1, 64), "length": (1, LENGTH)}
    export(model, {"tokens": tokens}, HERE / "models" / "encoder.pt2", dims={"tokens": sizes}, bounds=bounds)
    with torch.no_grad():
        known, asked = (model(encode(lines))["embedding"] for lines in (LINES, QUESTIONS))
    best = [(row.argmax().item(), row.max().item()) for row in asked @ known.T]
    text = "".join(f"{question}\n  {LINES[index]} ({likeness:.2f})\n" for question, (index, likeness) in zip(QUESTIONS, best))
    (HERE / "expected.txt").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
