#!/usr/bin/python3
"""Writes gpt_tied.json and gpt_gqa.json: what PyTorch (Debian's python3-torch, fp64, CPU) makes of two small GPTs.

    make_fixture.py           write the fixtures beside this script
    make_fixture.py --check   make them again and compare with the files, to 1e-11

A fixture holds dims, a batch (label -1 = not predicted), every parameter by its global name (row-major), the loss
(sum of -log p over the predicted tokens, divided by their count), every gradient, and for AdamW and SGD the loss and
the gradient norm before clipping at each step of a short training on that batch, and for AdamW the parameters at its
end. Weight decay acts on everything with two dims, embedding tables too, not on biases and norms. Numbers are written
so that reading them gives the same bits.
"""

import json
import math
import os
import random
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

VARIANTS = {
    # an odd number of heads, a prime vocabulary, an odd length: only tp 1 and tp 3 split it evenly
    "gpt_tied": dict(seed=11, layers=2, hidden=12, heads=3, kv_heads=3, ffn=20, vocab=17, seq=7, tied=True),
    # two kv heads for four heads (tp 2 and 4), three layers for two stages, untied
    "gpt_gqa": dict(seed=22, layers=3, hidden=16, heads=4, kv_heads=2, ffn=24, vocab=13, seq=9, tied=False),
}
BATCH = 3
STEPS = 6
ADAMW = dict(lr=0.01, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, clip=0.4)
SGD = dict(lr=0.1, weight_decay=0.01, clip=2.5)  # the norm falls below it on the way


def shapes(d):
    h, kv = d["hidden"], d["hidden"] // d["heads"] * d["kv_heads"]
    out = {"embedding.token.weight": (d["vocab"], h), "embedding.position.weight": (d["seq"], h)}
    for i in range(d["layers"]):
        for norm in ("norm1", "norm2"):
            out[f"blocks.{i}.{norm}.weight"] = out[f"blocks.{i}.{norm}.bias"] = (h,)
        linears = {"attention.query": (h, h), "attention.key": (kv, h), "attention.value": (kv, h),
                   "attention.out": (h, h), "mlp.up": (d["ffn"], h), "mlp.down": (h, d["ffn"])}
        for name, shape in linears.items():
            out[f"blocks.{i}.{name}.weight"], out[f"blocks.{i}.{name}.bias"] = shape, shape[:1]
    out["final_norm.weight"] = out["final_norm.bias"] = (h,)
    if not d["tied"]:
        out["head.weight"] = (d["vocab"], h)
    return out


def draw_parameters(d, rng):
    """Four decimals: short in the file. Large enough that no part of the model is nearly linear; queries and keys
    smaller, so that the true gradient of a key's bias, zero, is not drowned in fp32's rounding of its large parts."""
    parameters = {}
    for name, shape in shapes(d).items():
        centre = 1.0 if name.endswith("weight") and len(shape) == 1 else 0.0
        spread = 0.8 if name.startswith("embedding") else 0.4
        if ".query." in name or ".key." in name:
            spread = 0.08
        values = [round(centre + rng.uniform(-spread, spread), 4) for _ in range(math.prod(shape))]
        parameters[name] = torch.tensor(values).reshape(shape).requires_grad_()
    return parameters


def draw_batch(d, rng):
    """Labels are the next tokens; the samples have unequal numbers of predicted ones."""
    text = [[rng.randrange(d["vocab"]) for _ in range(d["seq"] + 1)] for _ in range(BATCH)]
    tokens, labels = [t[:-1] for t in text], [t[1:] for t in text]
    labels[0][2] = -1
    labels[1][-3:] = [-1] * 3
    return tokens, labels


def attention(d, p, prefix, x):
    batch, seq, h = x.shape
    head_dim = h // d["heads"]

    def heads(name, count):
        y = F.linear(x, p[f"{prefix}.{name}.weight"], p[f"{prefix}.{name}.bias"])
        return y.view(batch, seq, count, head_dim).transpose(1, 2)

    query = heads("query", d["heads"])
    repeats = d["heads"] // d["kv_heads"]
    key, value = (heads(name, d["kv_heads"]).repeat_interleave(repeats, dim=1) for name in ("key", "value"))
    scores = query @ key.transpose(2, 3) / math.sqrt(head_dim)
    future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(-1)
    context = (weights @ value).transpose(1, 2).reshape(batch, seq, h)
    return F.linear(context, p[f"{prefix}.out.weight"], p[f"{prefix}.out.bias"])


def loss_of(d, p, tokens, labels):
    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"], 1e-5)

    x = p["embedding.token.weight"][tokens] + p["embedding.position.weight"][: tokens.shape[1]]
    for i in range(d["layers"]):
        block = f"blocks.{i}"
        x = x + attention(d, p, f"{block}.attention", norm(f"{block}.norm1", x))
        up = F.linear(norm(f"{block}.norm2", x), p[f"{block}.mlp.up.weight"], p[f"{block}.mlp.up.bias"])
        act = F.gelu(up, approximate="tanh")
        x = x + F.linear(act, p[f"{block}.mlp.down.weight"], p[f"{block}.mlp.down.bias"])
    head = p["embedding.token.weight" if d["tied"] else "head.weight"]
    logits = F.linear(norm("final_norm", x), head)
    return F.cross_entropy(logits.reshape(-1, d["vocab"]), labels.reshape(-1), ignore_index=-1)


def flat(tensors):
    return {name: value.detach().flatten().tolist() for name, value in tensors.items()}


def train(d, start, batch, make_optimizer, options):
    """STEPS steps: losses and norms before clipping, and the parameters at the end."""
    p = {name: value.detach().clone().requires_grad_() for name, value in start.items()}
    groups = [{"params": [v for v in p.values() if v.dim() == 2], "weight_decay": options["weight_decay"]},
              {"params": [v for v in p.values() if v.dim() != 2], "weight_decay": 0.0}]
    optimizer = make_optimizer(groups)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(d, p, *batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(p.values(), options["clip"]).item()
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm)
    return dict(options, losses=losses, grad_norms=norms), flat(p)


def make(d):
    rng = random.Random(d["seed"])
    p = draw_parameters(d, rng)
    tokens, labels = draw_batch(d, rng)
    batch = torch.tensor(tokens), torch.tensor(labels)
    loss = loss_of(d, p, *batch)
    loss.backward()
    betas = (ADAMW["beta1"], ADAMW["beta2"])
    adamw, adamw_parameters = train(
        d, p, batch, lambda g: torch.optim.AdamW(g, lr=ADAMW["lr"], betas=betas, eps=ADAMW["eps"]), ADAMW)
    sgd, _ = train(d, p, batch, lambda g: torch.optim.SGD(g, lr=SGD["lr"]), SGD)
    return {
        "dims": {k: v for k, v in d.items() if k != "seed"},
        "tokens": tokens,
        "labels": labels,
        "loss": loss.item(),
        "adamw": adamw,
        "sgd": sgd,
        "parameters": flat(p),
        "gradients": flat({name: value.grad for name, value in p.items()}),
        "adamw_parameters": adamw_parameters,
    }


def text_of(fixture):
    """JSON with a line for each key, and for each parameter."""
    def lines(values, indent, brackets, show):
        return "{\n" + ",\n".join(f"{indent}{json.dumps(k)}: {show(v)}" for k, v in values.items()) + "\n" + brackets

    def show(value):
        nested = isinstance(value, dict) and any(name.startswith("embedding") for name in value)
        return lines(value, "  ", " }", json.dumps) if nested else json.dumps(value)

    return lines(fixture, " ", "}", show) + "\n"


def difference(a, b):
    """Largest |a - b| / max(1, |b|) of two fixtures, infinite where their structure or text differs."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((difference(a[k], b[k]) for k in a), default=0.0)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max((difference(x, y) for x, y in zip(a, b)), default=0.0)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) / max(1.0, abs(b))
    return 0.0 if a == b else math.inf


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: make_fixture.py [--check]")
    for name, dims in VARIANTS.items():
        path = os.path.join(folder, name + ".json")
        fixture = make(dims)
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text_of(fixture))
            continue
        with open(path, encoding="utf-8") as file:
            gap = difference(fixture, json.load(file))
        print(f"{path}: largest difference {gap:.1e}")
        if not gap < 1e-11:
            sys.exit(f"{path}: differs from what this script makes by {gap:.1e}, should be under 1e-11")


if __name__ == "__main__":
    main()
