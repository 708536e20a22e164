"""Segment contrails in satellite scenes with a 1 x 1 convolution, and write the masks of the test scenes as run lengths."""

import csv
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
SEED = int(os.environ.get("SEED", "0"))
EPOCHS = 1
BATCH_SIZE = 4
LEARNING_RATE = 0.1
POSITIVE_WEIGHT = 10.0
FRAME = 4
VALIDATION_SHARE = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load_image(record):
    """A false-colour image of the labelled frame, float32 of shape (3, height, width): differences of bands, and a band, standardized."""
    band11, band14, band15 = (np.load(record / f"band_{band}.npy", mmap_mode="r")[..., FRAME] for band in (11, 14, 15))
    image = np.stack([band15 - band14, band14 - band11, band14])
    centred = image - image.mean(axis=(1, 2), keepdims=True)
    return torch.from_numpy(centred / (centred.std(axis=(1, 2), keepdims=True) + 1e-6))


def load_mask(record):
    """Where there are contrails, float32 of shape (1, height, width)."""
    return torch.from_numpy(np.load(record / "human_pixel_masks.npy")[..., 0]).float()[None]


def encode(mask):
    """Run lengths of a mask, counted down its columns from 1; '-' for an empty one."""
    flat = np.concatenate([[0], mask.T.ravel(), [0]])
    starts, ends = np.flatnonzero(np.diff(flat) == 1), np.flatnonzero(np.diff(flat) == -1)
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True)) or "-"


def batches(records):
    for start in range(0, len(records), BATCH_SIZE):
        yield records[start : start + BATCH_SIZE]


def train_epoch(model, optimizer, records):
    order = torch.randperm(len(records)).tolist()
    weight = torch.tensor(POSITIVE_WEIGHT, device=DEVICE)
    for batch in batches([records[place] for place in order]):
        images = torch.stack([load_image(record) for record in batch]).to(DEVICE)
        masks = torch.stack([load_mask(record) for record in batch]).to(DEVICE)
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(images), masks, pos_weight=weight).backward()
        optimizer.step()


@torch.no_grad()
def predict(model, records):
    """Masks as int8 of shape (height, width), one record after another."""
    for batch in batches(records):
        images = torch.stack([load_image(record) for record in batch]).to(DEVICE)
        yield from (model(images) > 0)[:, 0].cpu().numpy().astype(np.int8)


def dice(model, records):
    """The Dice coefficient of all pixels of the records together."""
    shared = total = 0
    for record, predicted in zip(records, predict(model, records), strict=True):
        mask = load_mask(record)[0].numpy()
        shared += (predicted * mask).sum()
        total += predicted.sum() + mask.sum()
    return 2 * shared / total if total else 0.0


def main():
    torch.manual_seed(SEED)
    records = sorted((DATA / "train").iterdir())
    train_size = len(records) - int(VALIDATION_SHARE * len(records))

    model = nn.Conv2d(3, 1, kernel_size=1).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer, records[:train_size])
        print(f"epoch {epoch + 1}: validation Dice {dice(model, records[train_size:]):.4f}")

    test = sorted((DATA / "test").iterdir())
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["record_id", "encoded_pixels"])
        writer.writerows((record.name, encode(mask)) for record, mask in zip(test, predict(model, test), strict=True))


if __name__ == "__main__":
    main()
