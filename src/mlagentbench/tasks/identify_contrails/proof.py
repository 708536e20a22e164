"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.identify_contrails.grade import TABLE
from mlagentbench.tasks.identify_contrails.runs import NOTHING

NETWORK = """\
import csv
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
EPOCHS, BATCH_SIZE = 40, 10
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def image(record):
    b11, b14, b15 = (np.load(record / f"band_{band}.npy") for band in (11, 14, 15))
    split = np.stack([b15 - b14 + 1, (b14 - b11 + 1.5) / 2], axis=0)
    now = split[..., 4:7].mean(-1)
    before = split[..., :4].mean(-1)
    return torch.from_numpy(np.concatenate([now, split[..., 4], now - before]).astype(np.float32))


def encode(mask):
    flat = np.concatenate([[0], mask.T.ravel(), [0]])
    starts, ends = np.flatnonzero(np.diff(flat) == 1), np.flatnonzero(np.diff(flat) == -1)
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True)) or "-"


def block(inputs, outputs, dilation=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=dilation, dilation=dilation), nn.BatchNorm2d(outputs), nn.ReLU())


torch.manual_seed(0)
records, test = sorted((DATA / "train").iterdir()), sorted((DATA / "test").iterdir())
images = torch.stack([image(record) for record in records])
masks = torch.stack([torch.from_numpy(np.load(record / "human_pixel_masks.npy")[..., 0]).float()[None] for record in records])
model = nn.Sequential(block(6, 16), block(16, 16, 2), block(16, 16, 4), block(16, 16), nn.Conv2d(16, 1, 1)).to(DEVICE)
steps = EPOCHS * -(-len(records) // BATCH_SIZE)
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=steps)
for _ in range(EPOCHS):
    for batch in torch.randperm(len(records)).split(BATCH_SIZE):
        x, y = images[batch].to(DEVICE), masks[batch].to(DEVICE)
        turns, axes = int(torch.randint(4, ())), [2] if torch.rand(()) < 0.5 else []
        x, y = (part.rot90(turns, (2, 3)).flip(axes) for part in (x, y))
        probability = model(x).sigmoid()
        overlap = 2 * (probability * y).sum() / (probability + y).sum()
        loss = 1 - overlap + F.binary_cross_entropy(probability, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
model.eval()
with torch.no_grad(), open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["record_id", "encoded_pixels"])
    for record in test:
        x = image(record)[None].to(DEVICE)
        logits = sum(model(x.rot90(turns, (2, 3))).rot90(-turns, (2, 3)) for turns in range(4))
        writer.writerow([record.name, encode((logits[0, 0] > 0).cpu().numpy().astype(np.int8))])
"""
"""A convolutional network on several frames, with rotated and mirrored images, whose loss includes the Dice coefficient."""

oracle = TABLE.oracle


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return empty masks, full masks, and the masks of other scenes."""
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, encoded_pixels=f"1 {_pixels(data)}"),
        "nothing": TABLE.changed(data, encoded_pixels=NOTHING),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that the grader must refuse."""
    masks = {
        "half a pair": ("1 3 9", "write pairs"),
        "starts at 0": ("0 3", "counted from 1"),
        "an empty run": ("4 0", "at least one pixel"),
        "out of the image": (f"{_pixels(data)} 2", "leaves the image"),
        "far out of the image": (f"{2**62} {2**62}", "leaves the image"),
        "too large for an integer": (f"1 {2**70}", "whole numbers"),
        "not sorted": ("20 3 1 3", "sort the runs"),
        "overlapping": ("1 5 3 5", "overlap"),
        "twice": ("7 2 7 2", "overlap"),
        "fractions": ("1.0 3.0", "whole numbers"),
        "in brackets": ("[1, 3]", "whole numbers"),
        "nothing and something": ("- 1", "whole numbers"),
        "a mask for runs": ("0 0 0 1 1 0", "counted from 1"),
    }
    return {
        **TABLE.invalid(data),
        **{case: Invalid(TABLE.first_row(data, "encoded_pixels", mask), reason) for case, (mask, reason) in masks.items()},
    }


def solution() -> Files:
    """Return a script that trains the convolutional network."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return the starter with ten epochs."""
    return edited_starter(__file__, {"EPOCHS = 1": "EPOCHS = 10"})


def _pixels(data: Prepared) -> int:
    """Return how many pixels an image has."""
    height, width, _ = np.load(next((data.public / "data" / "test").glob("*/band_14.npy")), mmap_mode="r").shape
    return int(height * width)
