#!/usr/bin/python3
"""A GPT-2 as Hugging Face's transformers computes it, in plain PyTorch (Debian's python3-torch, CPU), that shares no
code with hpt-train: for folders that `hpt-train checkpoint export-hf` wrote, and for the fixture of import-hf.

    hf_logits.py FOLDER TOKENS      the loss of the model in FOLDER on a file of tokens, in all of its sequences of
                                    n_positions tokens, as `valid_loss` has it; its first logits too
    hf_logits.py --fixture          write hf_gpt2.json beside this script: a small model by its Hugging Face names,
                                    tokens, and the loss, all in fp64
    hf_logits.py --check            make it again and compare with the file, to 1e-12

A file of tokens holds u16 without a header, as nanoGPT's, or is one of `hpt-train data pack` with u16 tokens.
"""

import json
import math
import os
import random
import struct
import sys

import torch
import torch.nn.functional as F

torch.set_num_threads(1)

DTYPES = {"F32": torch.float32, "F64": torch.float64}
# Three heads and a prime vocabulary: tp 1 and tp 3 split it.
FIXTURE = dict(model_type="gpt2", activation_function="gelu_new", vocab_size=17, n_positions=7, n_embd=12, n_layer=2,
               n_head=3, n_inner=21, layer_norm_epsilon=1e-5, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
SAMPLES = 5


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + place for place in entry["data_offsets"])
        raw = bytearray(data[begin:end])
        tensors[name] = torch.frombuffer(raw, dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def read_folder(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    index = os.path.join(folder, "model.safetensors.index.json")
    names = ["model.safetensors"]
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            weight_map = json.load(file)["weight_map"]
        names = sorted(set(weight_map.values()))
    tensors = {}
    for name in names:
        found = read_safetensors(os.path.join(folder, name))
        if len(names) > 1:
            assert all(weight_map[tensor] == name for tensor in found), "the index tells another place"
        tensors.update(found)
    return config, tensors


def logits_of(c, w, tokens):
    """[samples, n_positions, vocab_size]; every linear is x @ W + b with W [in, out]."""

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], c["layer_norm_epsilon"])

    def conv1d(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def gelu_new(x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))

    def attention(name, x):
        samples, length, width = x.shape
        query, key, value = conv1d(name + ".c_attn", x).split(width, dim=2)

        def heads(y):
            return y.view(samples, length, c["n_head"], width // c["n_head"]).permute(0, 2, 1, 3)

        scores = heads(query) @ heads(key).transpose(-1, -2) / math.sqrt(width // c["n_head"])
        past = torch.tril(torch.ones(length, length, dtype=torch.bool))
        mixed = torch.where(past, scores, torch.full_like(scores, -math.inf)).softmax(-1) @ heads(value)
        return conv1d(name + ".c_proj", mixed.permute(0, 2, 1, 3).reshape(samples, length, width))

    assert c["activation_function"] == "gelu_new"
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]
    for i in range(c["n_layer"]):
        block = f"transformer.h.{i}"
        x = x + attention(block + ".attn", norm(block + ".ln_1", x))
        x = x + conv1d(block + ".mlp.c_proj", gelu_new(conv1d(block + ".mlp.c_fc", norm(block + ".ln_2", x))))
    head = w["lm_head.weight"] if not c.get("tie_word_embeddings", True) else w["transformer.wte.weight"]
    return norm("transformer.ln_f", x) @ head.T


def loss_of(config, weights, tokens):
    """Mean over all sequences, and the logits of the first one's last position."""
    length = config["n_positions"]
    count = (len(tokens) - 1) // length
    x = torch.tensor(tokens[: count * length]).view(count, length)
    y = torch.tensor(tokens[1 : count * length + 1]).view(count, length)
    total = 0.0
    for sample, labels in zip(x, y):
        logits = logits_of(config, weights, sample[None]).double()
        total += F.cross_entropy(logits[0], labels, reduction="sum").item()
    first = logits_of(config, weights, x[:1])[0, -1]
    return total / (count * length), first


def read_tokens(path):
    with open(path, "rb") as file:
        data = file.read()
    begin = 64 if data[:8] == b"\x89HPTTOK\n" else 0
    return list(struct.unpack(f"<{(len(data) - begin) // 2}H", data[begin:]))


def fixture_weights(rng):
    c = FIXTURE
    width, inner = c["n_embd"], c["n_inner"]
    shapes = {"transformer.wte": (c["vocab_size"], width), "transformer.wpe": (c["n_positions"], width)}
    biased = {}
    for i in range(c["n_layer"]):
        block = f"transformer.h.{i}"
        biased.update({block + ".ln_1": (width,), block + ".attn.c_attn": (width, 3 * width),
                       block + ".attn.c_proj": (width, width), block + ".ln_2": (width,),
                       block + ".mlp.c_fc": (width, inner), block + ".mlp.c_proj": (inner, width)})
    biased["transformer.ln_f"] = (width,)
    all_shapes = {name + ".weight": shape for name, shape in {**shapes, **biased}.items()}
    all_shapes.update({name + ".bias": shape[-1:] for name, shape in biased.items()})
    weights = {}
    for name, shape in all_shapes.items():
        centre = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
        values = [round(centre + rng.uniform(-0.6, 0.6), 3) for _ in range(math.prod(shape))]
        weights[name] = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return weights


def make_fixture():
    rng = random.Random(33)
    weights = fixture_weights(rng)
    tokens = [rng.randrange(FIXTURE["vocab_size"]) for _ in range(SAMPLES * FIXTURE["n_positions"] + 1)]
    loss, _ = loss_of(FIXTURE, weights, tokens)
    tensors = {name: {"shape": list(value.shape), "values": value.flatten().tolist()} for name, value in weights.items()}
    return {"config": FIXTURE, "tokens": tokens, "loss": loss, "tensors": tensors}


def text_of(fixture):
    """A line for each key, and for each tensor."""
    tensors = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fixture["tensors"].items())
    rest = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in fixture.items() if key != "tensors")
    return "{\n" + rest + ' "tensors": {\n' + tensors + "\n }\n}\n"


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hf_gpt2.json")
    if sys.argv[1:] == ["--fixture"]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text_of(make_fixture()))
    elif sys.argv[1:] == ["--check"]:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
        made = json.loads(text_of(make_fixture()))
        gap = abs(made.pop("loss") - stored.pop("loss"))
        print(f"{path}: the loss differs by {gap:.1e}")
        if not gap < 1e-12 or made != stored:
            sys.exit(f"{path}: differs from what this script makes")
    elif len(sys.argv) == 3:
        config, weights = read_folder(sys.argv[1])
        loss, logits = loss_of(config, weights, read_tokens(sys.argv[2]))
        print(f"loss {loss:.15f}")
        print("logits of the first sequence's end:", " ".join(f"{x:.6f}" for x in logits[:8].tolist()), "...")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
