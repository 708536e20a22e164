"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.imdb.grade import TABLE

LOAD = """
tokenizer = AutoTokenizer.from_pretrained(MODEL)
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=2)
"""
# The tiny model has random weights and needs other settings than the real one.
TRAIN = """
small = model.config.dim < 128
length, epochs, rate = (64, 5, 2e-3) if small else (384, 3, 3e-5)
device = "cuda" if torch.cuda.is_available() else "cpu"
model.to(device).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
steps = epochs * -(-len(texts) // 32)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
for epoch in range(epochs):
    order = torch.randperm(len(texts)).tolist()
    for start in range(0, len(order), 32):
        batch = order[start : start + 32]
        inputs = tokenizer([texts[n] for n in batch], padding=True, truncation=True, max_length=length, return_tensors="pt")
        loss = model(**inputs.to(device), labels=torch.tensor(labels[batch], device=device)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
"""
PREDICT = """
tokenizer, model, length = model
model.eval()
found = []
with torch.no_grad():
    for start in range(0, len(texts), 64):
        batch = texts[start : start + 64]
        inputs = tokenizer(batch, padding=True, truncation=True, max_length=length, return_tensors="pt")
        found.append(model(**inputs.to(model.device)).logits.softmax(dim=1).cpu().numpy())
return np.concatenate(found)
"""


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true labels, also with probabilities of 0.49 and 0.51."""
    barely = {name: pl.col(name) * 0.02 + 0.49 for name in TABLE.columns}
    return {**TABLE.oracle(data), "barely": TABLE.changed(data, **barely)}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return predictions that ignore the reviews; the classes are equally frequent, so their accuracy is about 0.5."""
    more_frequent = float(pl.read_csv(data.public / "data" / "train.csv")["label"].mode().sort()[0])
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, negative=0.5, positive=0.5),
        "majority": TABLE.changed(data, negative=1 - more_frequent, positive=more_frequent),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return files that are not tables of these reviews, or do not hold probabilities."""
    return {
        **TABLE.invalid(data),
        "logits": TABLE.refused(data, "from 0 to 1", positive=pl.col("positive") * 6 - 3),
        "both classes for sure": TABLE.refused(data, "1 together", negative=1.0, positive=1.0),
        "labels": Invalid(TABLE.files(TABLE.answers(data.private).select("idx", "label")), "negative"),
    }


def solution() -> Files:
    """Return a script that fine-tunes DistilBERT."""
    return _filled(LOAD + TRAIN + "return tokenizer, model, length")


def ineffective() -> Files:
    """Return a script that uses DistilBERT without fine-tuning it."""
    return _filled(LOAD + "return tokenizer, model, 128")


def _filled(fine_tune: str) -> Files:
    """Return the starter with the bodies of its two functions filled in."""
    stubs = {
        '    raise NotImplementedError("load the tokenizer and the model from MODEL, and fine-tune")': fine_tune,
        '    raise NotImplementedError("put the reviews through the fine-tuned model")': PREDICT,
    }
    return edited_starter(__file__, {stub: textwrap.indent(body.strip(), "    ") for stub, body in stubs.items()})
