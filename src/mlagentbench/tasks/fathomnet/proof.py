"""The task's proof: submissions and scripts that must win, that must not, and that must be refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.fathomnet.grade import CUTOFF, TABLE
from mlagentbench.tasks.fathomnet.prepare import listed

NETWORK = """\
import ast
import csv
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
SIZE, EPOCHS, BATCH_SIZE = 64, 30, 32
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load(ids):
    images = [Image.open(DATA / "images" / f"{name}.png").convert("RGB").resize((SIZE, SIZE)) for name in ids]
    return torch.from_numpy(np.stack([np.asarray(image) for image in images])).permute(0, 3, 1, 2).float() / 128 - 1


def block(inputs, outputs, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(block(3, 24, 2), block(24, 48, 2), block(48, 64, 1), nn.Conv2d(64, classes, 1))

    def forward(self, x):
        return torch.logsumexp(self.features(x).flatten(2), dim=2) - 3


def read(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


torch.manual_seed(0)
rows, test_ids = read("multilabel_classification/train.csv"), [row["id"] for row in read("sample_submission.csv")]
found = [[int(number) for number in ast.literal_eval(row["categories"])] for row in rows]
known = sorted({number for numbers in found for number in numbers})
images, test = load([row["id"] for row in rows]), load(test_ids)
labels = torch.tensor([[float(number in numbers) for number in known] for numbers in found])
model = Net(len(known)).to(DEVICE)
steps = EPOCHS * -(-len(images) // BATCH_SIZE)
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
for _ in range(EPOCHS):
    for batch in torch.randperm(len(images)).split(BATCH_SIZE):
        x = images[batch].rot90(int(torch.randint(4, ())), (2, 3)).roll(int(torch.randint(SIZE, ())), 3)
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(x.to(DEVICE)), labels[batch].to(DEVICE)).backward()
        optimizer.step()
        schedule.step()
model.eval()
with torch.no_grad():
    scores = sum(model(test.rot90(turns, (2, 3)).to(DEVICE)).cpu() for turns in range(4)) / 4


def water(images):
    return images.flatten(2).median(dim=2).values


usual = water(images)
dark = ((usual.mean(0) - water(test)) / usual.std(0)).sum(1)
strange = (-torch.logsumexp(scores, dim=1)).argsort().argsort() + dark.argsort().argsort() * 2
with open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "categories", "osd"])
    for name, row, osd in zip(test_ids, scores.argsort(dim=1, descending=True).tolist(), strange.tolist(), strict=True):
        numbers = [known[place] for place in row][:20]
        writer.writerow([name, " ".join(map(str, numbers)), osd / (3 * len(test_ids))])
"""
"""A network that detects each animal anywhere in the picture; dark water and unfamiliar animals count as deep."""

COMMONEST = """\
import ast
import csv
from collections import Counter

with open("data/multilabel_classification/train.csv", newline="") as file:
    counts = Counter(number for row in csv.DictReader(file) for number in ast.literal_eval(row["categories"]))
commonest = " ".join(str(int(number)) for number, _ in counts.most_common(20))
with open("data/sample_submission.csv", newline="") as file:
    rows = [{**row, "categories": commonest, "osd": 0.5} for row in csv.DictReader(file)]
with open("submission.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, ["id", "categories", "osd"])
    writer.writeheader()
    writer.writerows(rows)
"""
"""No model: the commonest categories for every picture."""


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the labels themselves, also with more categories after them and `osd` on another scale."""
    wordy = TABLE.changed(data, categories=pl.col("categories") + pl.lit(" 290 289" + " 288" * 30), osd=pl.col("osd") * 700 - 3)
    return {**TABLE.oracle(data), "more than needed": wordy}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return constant answers, the labels of other pictures, and reversed depths."""
    labels = pl.read_csv(data.public / "data" / "multilabel_classification" / "train.csv")["categories"]
    commonest = Counter(category for text in labels for category in listed(text)).most_common(CUTOFF)
    return {
        **TABLE.naive(data),
        "majority": TABLE.changed(data, categories=" ".join(str(category) for category, _ in commonest), osd=0.5),
        "constant": TABLE.changed(data, categories="1 2 3", osd=1),
        "the other way round": TABLE.changed(data, categories="5", osd=1 - pl.col("osd")),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    lists = {
        "no category": ("", "at least one category"),
        "category 0": ("0 5", "from 1 to 290"),
        "category 291": ("5 291", "from 1 to 290"),
        "a list in brackets": ("[1.0, 9.0]", "separated by blanks"),
        "commas": ("1,9", "separated by blanks"),
        "names": ("Sebastes Actiniaria", "whole numbers"),
        "far too large": (f"1 {2**70}", "whole numbers"),
    }
    return {
        **TABLE.invalid(data),
        **{case: Invalid(TABLE.first_row(data, "categories", text), reason) for case, (text, reason) in lists.items()},
        "file names for ids": TABLE.refused(data, "lacks", id=pl.col("id") + ".png"),
    }


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return a script that must not win: it uses no picture."""
    return {"train.py": COMMONEST}
