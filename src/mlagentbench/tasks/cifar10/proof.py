"""The task's proof: submissions and scripts that must win, must not, and must be refused; cifar100 uses them with more classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text
from mlagentbench.tasks.cifar10.grade import CLASSES, TABLE
from mlagentbench.tasks.cifar10.pictures import Array

STARTER = Path(__file__).parent / "starter" / "train.py"

NETWORK = """\
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
EPOCHS = 8
BATCH_SIZE = 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def load(name):
    return torch.from_numpy(np.load(DATA / name)).permute(0, 3, 1, 2).float().sub(120).div(64).contiguous()


def varied(images):
    mirrored = torch.rand(len(images), 1, 1, 1) < 0.5
    down, right = torch.randint(-3, 4, (2,)).tolist()
    return torch.where(mirrored, images.flip(3), images).roll((down, right), (2, 3))


torch.manual_seed(0)
images, test = load("train_images.npy"), load("test_images.npy")
labels = torch.from_numpy(np.load(DATA / "train_labels.npy")).long()
classes = len((DATA / "class_names.txt").read_text().split())
model = nn.Sequential(block(3, 24), block(24, 48), block(48, 96), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(384, classes)).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
steps = EPOCHS * -(-len(images) // BATCH_SIZE)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
for _ in range(EPOCHS):
    for batch in torch.randperm(len(images)).split(BATCH_SIZE):
        optimizer.zero_grad()
        F.cross_entropy(model(varied(images[batch]).to(DEVICE)), labels[batch].to(DEVICE)).backward()
        optimizer.step()
        schedule.step()
model.eval()
with torch.no_grad():
    views = [sum(model(view.to(DEVICE)).softmax(1).cpu() / 2 for view in (part, part.flip(3))) for part in test.split(500)]
header = ",".join(["id", *map(str, range(classes))])
rows = np.column_stack([np.arange(len(test)), torch.cat(views)])
np.savetxt("submission.csv", rows, fmt=["%d"] + ["%.6f"] * classes, delimiter=",", header=header, comments="")
"""
"""A deeper network with batch normalization, pictures mirrored and shifted, and one cycle of the learning rate, in 8 epochs."""


def table(predicted: Array, classes: int) -> pl.DataFrame:
    """Make a submission that gives one class of every picture a probability of 1."""
    certain = np.eye(classes)[predicted]
    return pl.DataFrame({"id": np.arange(len(predicted)), **{str(number): certain[:, number] for number in range(classes)}})


def truth(data: Prepared) -> Array:
    """Return the classes of the test pictures."""
    return pl.read_csv(data.private / "answers.csv")["label"].to_numpy()


def naive_tables(labels: Array, classes: int) -> dict[str, Files]:
    """Return submissions of one class for all, of the right classes under other ids, and of equal probabilities."""
    right = table(labels, classes)
    return {
        "constant": {TABLE: table_text(table(np.zeros_like(labels), classes))},
        "shuffled": {TABLE: table_text(shuffled(right, "id"))},
        "undecided": {TABLE: table_text(right.with_columns(pl.lit(1 / classes).alias(str(number)) for number in range(classes)))},
    }


def junk_tables(labels: Array, classes: int) -> dict[str, Invalid]:
    """Return submissions that must be refused."""
    right = table(labels, classes)
    worded = pl.DataFrame({"id": right["id"], "label": labels})
    logits = right.with_columns(pl.col("3") * 20 - 5)
    return {
        **invalid_tables(table_text(right), id_column="id", number_column="3"),
        "classes for probabilities": Invalid({TABLE: table_text(worded)}, "has no column '0'"),
        "logits": Invalid({TABLE: table_text(logits)}, "from 0 to 1"),
        "percent": Invalid({TABLE: table_text(right.with_columns(pl.col("3") * 100))}, "from 0 to 1"),
        "ids from 1": Invalid({TABLE: table_text(right.with_columns(pl.col("id") + 1))}, "there is no id '0'"),
    }


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the classes themselves; also in another order, and as smaller probabilities that are still the largest."""
    right = table(truth(data), CLASSES)
    unsure = right.with_columns((0.05 + 0.5 * pl.col(str(number))).alias(str(number)) for number in range(CLASSES))
    return {
        "certain": {TABLE: table_text(right)},
        "other order": {TABLE: table_text(right.reverse())},
        "unsure": {TABLE: table_text(unsure)},
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return submissions that must score worse."""
    return naive_tables(truth(data), CLASSES)


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    return junk_tables(truth(data), CLASSES)


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return a script that must not win: only the batches of its prediction differ from the starter's."""
    starter = STARTER.read_text(encoding="utf-8")
    return {"train.py": starter.replace("images.split(1000)", "images.split(500)")}
