"""The task's proof: submissions and scripts that must win, must not, and must be refused; cifar100 uses them with more classes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, TableTask, edited_starter
from mlagentbench.tasks.cifar10.grade import TABLE

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


def unsure(table: TableTask, data: Prepared) -> Mapping[str, Files]:
    """Return submissions whose right class has the largest probability: 1, and 0.55."""
    halves = {name: 0.05 + 0.5 * pl.col(name) for name in table.columns}
    return {**table.oracle(data), "unsure": table.changed(data, **halves)}


def uninformed(table: TableTask, data: Prepared) -> Mapping[str, Files]:
    """Return submissions of one class for all, of the right classes under other ids, and of equal probabilities."""
    return {
        **table.naive(data),
        "constant": table.changed(data, **{name: float(name == "0") for name in table.columns}),
        "undecided": table.changed(data, **dict.fromkeys(table.columns, 1 / len(table.columns))),
    }


def refused(table: TableTask, data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    classes = table.answers(data.private).select("id", "label")
    return {
        **table.invalid(data),
        "classes for probabilities": Invalid(table.files(classes), "has no column '0'"),
        "logits": table.refused(data, "from 0 to 1", **{"3": pl.col("3") * 20 - 5}),
        "percent": table.refused(data, "from 0 to 1", **{"3": pl.col("3") * 100}),
        "ids from 1": table.refused(data, "there is no id '0'", id=pl.int_range(1, pl.len() + 1)),
    }


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return submissions that must score best."""
    return unsure(TABLE, data)


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return submissions that must score worse."""
    return uninformed(TABLE, data)


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    return refused(TABLE, data)


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return a script that must not win: twice as many epochs, which the rules forbid and which gain little."""
    return edited_starter(__file__, {"EPOCHS = 10": "EPOCHS = 20"})
