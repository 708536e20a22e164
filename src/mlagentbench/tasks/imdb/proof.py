"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

NAME = "submission.csv"
STARTER = Path(__file__).parent / "starter" / "train.py"

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
    """Return the true labels: with probabilities of 0 and 1, with 0.49 and 0.51, and in reverse order."""
    labels = _answers(data)
    return {
        "sure": _files(labels["idx"], labels["label"].cast(pl.Float64)),
        "barely": _files(labels["idx"], labels["label"] * 0.02 + 0.49),
        "reversed": _files(labels["idx"].reverse(), labels["label"].reverse().cast(pl.Float64)),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return predictions that ignore the reviews; the classes are equally frequent, so their accuracy is about 0.5."""
    labels = _answers(data)
    train = pl.read_csv(data.public / "data" / "train.csv")
    more_frequent = 1.0 if (train["label"].mean() or 0) > 0.5 else 0.0  # type: ignore[operator]
    return {
        "constant": _files(labels["idx"], pl.repeat(0.5, len(labels), eager=True)),
        "majority": _files(labels["idx"], pl.repeat(more_frequent, len(labels), eager=True)),
        "shuffled": {NAME: table_text(shuffled(_table(labels["idx"], labels["label"].cast(pl.Float64)), "idx"))},
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return files that are not tables of these reviews, or do not hold probabilities."""
    labels = _answers(data)
    table = _table(labels["idx"], labels["label"].cast(pl.Float64))
    cases = invalid_tables(table_text(table), id_column="idx", number_column="positive")
    logits = table.with_columns(positive=pl.col("positive") * 6 - 3)
    twice = table.with_columns(negative=pl.lit(1.0), positive=pl.lit(1.0))
    cases["logits"] = Invalid({NAME: table_text(logits)}, "from 0 to 1")
    cases["both classes for sure"] = Invalid({NAME: table_text(twice)}, "1 together")
    cases["labels"] = Invalid({NAME: table_text(labels)}, "negative")
    return cases


def solution() -> Files:
    """Return a script that fine-tunes DistilBERT."""
    return _filled(LOAD + TRAIN + "return tokenizer, model, length")


def ineffective() -> Files:
    """Return a script that uses DistilBERT without fine-tuning it."""
    return _filled(LOAD + "return tokenizer, model, 128")


def _filled(fine_tune: str) -> Files:
    """Return the starter with the bodies of its two functions filled in."""
    text = STARTER.read_text(encoding="utf-8")
    for stub, body in (
        ('    raise NotImplementedError("load the tokenizer and the model from MODEL, and fine-tune")', fine_tune),
        ('    raise NotImplementedError("put the reviews through the fine-tuned model")', PREDICT),
    ):
        assert text.count(stub) == 1
        text = text.replace(stub, textwrap.indent(body.strip(), "    "))
    return {"train.py": text}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def _table(idx: pl.Series, positive: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"idx": idx, "negative": 1 - positive, "positive": positive})


def _files(idx: pl.Series, positive: pl.Series) -> Files:
    return {NAME: table_text(_table(idx, positive))}
