"""Train a network that tells which animals are in a picture of the sea floor, and whether the picture is from deeper water."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
SEED = int(os.environ.get("SEED", "0"))
CATEGORIES = 290
SIZE = 64
EPOCHS = 2
BATCH_SIZE = 32
VALIDATION_SHARE = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(torch.utils.data.Dataset):
    """Pictures of 64 x 64, and a vector of 0 and 1 for the categories in each; without known categories all 0."""

    def __init__(self, ids, categories=None):
        self.ids = ids
        self.categories = categories

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        image = Image.open(DATA / "images" / f"{self.ids[index]}.png").convert("RGB").resize((SIZE, SIZE))
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)
        labels = torch.zeros(CATEGORIES)
        if self.categories is not None:
            for category in self.categories[index].split():
                labels[int(category) - 1] = 1.0
        return pixels, labels


class Net(nn.Module):
    """Three convolutions; a logit for each category."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Linear(64, CATEGORIES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def average_precision(predicted, actual):
    """Average precision of an ordered list of categories, as the score counts it."""
    hits, total = 0, 0.0
    for rank, category in enumerate(predicted[:20], start=1):
        if category in actual:
            hits += 1
            total += hits / rank
    return total / min(len(actual), 20)


@torch.no_grad()
def predict(model, pictures):
    """Probabilities of the categories, (count, 290)."""
    loader = torch.utils.data.DataLoader(pictures, BATCH_SIZE)
    return torch.cat([model(images.to(DEVICE)).sigmoid().cpu() for images, _ in loader])


def main():
    torch.manual_seed(SEED)
    table = pd.read_csv(DATA / "multilabel_classification" / "train.csv")
    train_size = len(table) - int(VALIDATION_SHARE * len(table))
    train = Pictures(table["id"][:train_size].tolist(), table["categories"][:train_size].tolist())
    valid = Pictures(table["id"][train_size:].tolist(), table["categories"][train_size:].tolist())

    model = Net().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(EPOCHS):
        for images, labels in torch.utils.data.DataLoader(train, BATCH_SIZE, shuffle=True):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(images.to(DEVICE)), labels.to(DEVICE)).backward()
            optimizer.step()
        ranked = predict(model, valid).argsort(dim=1, descending=True) + 1
        actual = [set((labels.nonzero().flatten() + 1).tolist()) for _, labels in valid]
        precision = np.mean([average_precision(row, found) for row, found in zip(ranked.tolist(), actual, strict=True)])
        print(f"epoch {epoch + 1}: validation MAP@20 {precision:.4f}")

    submission = pd.read_csv(DATA / "sample_submission.csv")
    probabilities = predict(model, Pictures(submission["id"].tolist()))
    ranked = probabilities.argsort(dim=1, descending=True)[:, :20] + 1
    submission["categories"] = [" ".join(map(str, row)) for row in ranked.tolist()]
    submission["osd"] = 1 - probabilities.max(dim=1).values.numpy()
    submission.to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
