"""Train a small convolutional network to tell the ten classes apart, and predict the test images."""

import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
SEED = int(os.environ.get("SEED", "0"))
EPOCHS = 10
BATCH_SIZE = 16
LEARNING_RATE = 0.003  # at its highest
VALIDATION_SHARE = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    """Two convolutions and two linear layers, for images of 32 x 32."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 5, stride=2)
        self.conv2 = nn.Conv2d(16, 32, 5)
        self.fc1 = nn.Linear(32 * 5 * 5, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def load_images(name):
    """Images as float32 of shape (count, 3, 32, 32), of a mean near 0 and a standard deviation near 1."""
    images = torch.from_numpy(np.load(DATA / name)).permute(0, 3, 1, 2)
    return images.float().sub(127.5).div(51).contiguous()


def train_epoch(model, optimizer, schedule, images, labels):
    model.train()
    for batch in torch.randperm(len(images)).split(BATCH_SIZE):
        x, y = images[batch].to(DEVICE), labels[batch].to(DEVICE)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def predict(model, images):
    """Class probabilities, of shape (count, classes)."""
    model.eval()
    return torch.cat([model(batch.to(DEVICE)).softmax(dim=1).cpu() for batch in images.split(1000)])


def main():
    torch.manual_seed(SEED)
    images = load_images("train_images.npy")
    labels = torch.from_numpy(np.load(DATA / "train_labels.npy")).long()
    classes = len((DATA / "class_names.txt").read_text().split())
    train_size = len(images) - int(VALIDATION_SHARE * len(images))

    model = Net(classes).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    steps = EPOCHS * -(-train_size // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.2)
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer, schedule, images[:train_size], labels[:train_size])
        predicted = predict(model, images[train_size:]).argmax(dim=1)
        accuracy = (predicted == labels[train_size:]).float().mean().item()
        print(f"epoch {epoch + 1}: validation accuracy {accuracy:.4f}")

    probabilities = predict(model, load_images("test_images.npy")).numpy()
    header = ",".join(["id", *map(str, range(classes))])
    rows = np.column_stack([np.arange(len(probabilities)), probabilities])
    np.savetxt("submission.csv", rows, fmt=["%d"] + ["%.6f"] * classes, delimiter=",", header=header, comments="")


if __name__ == "__main__":
    main()
