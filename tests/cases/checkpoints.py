"""Exports models of several libraries with random weights, each with its state dict as PyTorch writes it.

usage: checkpoints.py OUT [NAME ...]

Writes OUT/<name>/{model.pt2,inputs.safetensors,outputs.safetensors,state.safetensors}, which `AOTI_CHECKPOINTS=OUT` names
to the test of weights by name, and `cargo aoti verify OUT` runs as cases. Needs torch, torchvision, timm, transformers and
safetensors. Sizes are small: what counts is how many forms of weights there are.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def image(size, count=1):
    return (torch.randn(count, 3, size, size),)


def vision(name, size, **options):
    import torchvision

    return getattr(torchvision.models, name)(weights=None, **options), image(size)


@model
def squeezenet():
    return vision("squeezenet1_1", 64, num_classes=10)


@model
def shufflenet():
    return vision("shufflenet_v2_x0_5", 64, num_classes=10)


@model
def mnasnet():
    return vision("mnasnet0_5", 64, num_classes=10)


@model
def regnet():
    return vision("regnet_y_400mf", 64, num_classes=10)


@model
def densenet():
    from torchvision.models import DenseNet

    return DenseNet(8, (2, 3, 2), 16, num_classes=10), image(64)


@model
def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(24, 48, 1), CNBlockConfig(48, None, 2)], num_classes=10), image(64)


@model
def swin():
    from torchvision.models import SwinTransformer

    return SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10), image(64)


def timm_model(name, size, **options):
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **options), image(size)


@model
def mixer():
    import timm

    return timm.models.MlpMixer(10, 64, patch_size=16, num_blocks=2, embed_dim=48), image(64)


@model
def ghostnet():
    return timm_model("ghostnet_050", 64)


@model
def mobilevit():
    return timm_model("mobilevit_xxs", 64)


@model
def efficientnet():
    return timm_model("efficientnet_lite0", 64)


class Outputs(nn.Module):
    """A model of transformers as a function of tensors."""

    def __init__(self, inner, field):
        super().__init__()
        self.inner, self.field = inner, field

    def forward(self, **inputs):
        return getattr(self.inner(**inputs), self.field)


def tokens(count=12, vocabulary=200):
    return {"input_ids": torch.randint(3, vocabulary, (2, count))}


def text(kind, field="last_hidden_state", inputs=None, model_class=None, **options):
    import transformers

    config = getattr(transformers, f"{kind}Config")(**options)
    config._attn_implementation = "sdpa"
    made = getattr(transformers, model_class or f"{kind}Model")(config)
    return Outputs(made, field), {**(inputs or tokens()), **({"use_cache": False} if hasattr(config, "use_cache") else {})}


ENCODER = dict(
    vocab_size=200, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=64,
)  # fmt: skip


@model
def roberta():
    return text("Roberta", **ENCODER)


@model
def electra():
    return text("Electra", **ENCODER, embedding_size=32)


@model
def albert():
    return text("Albert", **ENCODER, embedding_size=32)


@model
def distilbert():
    return text("DistilBert", vocab_size=200, dim=48, n_layers=2, n_heads=4, hidden_dim=96)


@model
def gpt2():
    return text("GPT2", "logits", model_class="GPT2LMHeadModel", vocab_size=200, n_embd=48, n_layer=2, n_head=4)


DECODER = {**ENCODER, "num_key_value_heads": 2}


@model
def mistral():
    return text("Mistral", "logits", model_class="MistralForCausalLM", **DECODER)


@model
def qwen():
    return text("Qwen2", "logits", model_class="Qwen2ForCausalLM", **DECODER, tie_word_embeddings=True)


@model
def pythia():
    return text("GPTNeoX", "logits", model_class="GPTNeoXForCausalLM", **ENCODER)


@model
def t5():
    ids = {**tokens(), "decoder_input_ids": torch.randint(3, 200, (2, 5))}
    return text(
        "T5", "logits", ids, "T5ForConditionalGeneration",
        vocab_size=200, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4,
    )  # fmt: skip


@model
def wav2vec():
    sound = {"input_values": torch.randn(1, 4000)}
    return text("Wav2Vec2", inputs=sound, **{**ENCODER, "conv_dim": (32, 32), "conv_stride": (5, 4), "conv_kernel": (10, 8)},
                num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, feat_extract_norm="layer")  # fmt: skip


@model
def tagger():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = nn.Embedding(300, 24), nn.Linear(64, 9)
            self.steps = nn.LSTM(24, 32, bidirectional=True, batch_first=True)

        def forward(self, words):
            return self.out(self.steps(self.words(words))[0])

    return Tagger(), (torch.randint(0, 300, (2, 7)),)


@model
def vocoder():
    def up(inputs, outputs, factor):
        weight_norm = nn.utils.parametrizations.weight_norm
        turned = nn.ConvTranspose1d(inputs, outputs, 2 * factor, factor, factor // 2)
        return [nn.LeakyReLU(0.1), weight_norm(turned), weight_norm(nn.Conv1d(outputs, outputs, 3, padding=1))]

    return nn.Sequential(nn.Conv1d(20, 32, 7, padding=3), *up(32, 16, 4), *up(16, 8, 2), nn.Conv1d(8, 1, 7)), (
        torch.randn(1, 20, 16),
    )


def main():
    folder = pathlib.Path(sys.argv[1])
    failed = []
    for name in sys.argv[2:] or MODELS:
        torch.manual_seed(0)
        try:
            made, inputs = MODELS[name]()
            made.eval()
            # Statistics other than those that layers begin with, so that folding them shows.
            for key, buffer in made.named_buffers():
                if key.endswith(("running_mean", "running_var")):
                    buffer.uniform_(0.5, 1.5)
            names = inputs if isinstance(inputs, dict) else None
            with torch.no_grad():
                program = torch.export.export(made, () if names else inputs, dict(inputs) if names else None)
                outputs = made(**inputs) if names else made(*inputs)
        except Exception as error:  # noqa: BLE001 - the others are still worth having
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            continue
        case = folder / name
        case.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, case / "model.pt2")
        given = [value for value in (inputs.values() if names else inputs) if isinstance(value, torch.Tensor)]
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        for file, tensors in [("inputs", given), ("outputs", outputs)]:
            numbered = {str(at): tensor.contiguous() for at, tensor in enumerate(tensors)}
            save_file(numbered, case / f"{file}.safetensors")
        # Tensors that two names share are written for each.
        state = {key: tensor.clone().contiguous() for key, tensor in made.state_dict().items()}
        save_file(state, case / "state.safetensors")
        print(f"{name}: {len(state)} tensors", flush=True)
    for line in failed:
        print(line, file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
