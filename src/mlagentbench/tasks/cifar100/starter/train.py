"""Train a small convolutional network to tell the hundred classes apart, and predict the test images."""

import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = Path("data")
SEED = int(os.environ.get("SEED", "0"))
EPOCHS = 5
BATCH_SIZE = 8
LEARNING_RATE = 0.001
VALIDATION_SHARE = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    """Two convolutions and three linear layers, for images of 32 x 32."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def load_images(name):
    """Images as float32 of shape (count, 3, 32, 32), from -1 to 1."""
    images = torch.from_numpy(np.load(DATA / name)).permute(0, 3, 1, 2)
    return images.float().div(127.5).sub(1).contiguous()


def train_epoch(model, optimizer, images, labels):
    model.train()
    for batch in torch.randperm(len(images)).split(BATCH_SIZE):
        x, y = images[batch].to(DEVICE), labels[batch].to(DEVICE)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


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
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer, images[:train_size], labels[:train_size])
        predicted = predict(model, images[train_size:]).argmax(dim=1)
        accuracy = (predicted == labels[train_size:]).float().mean().item()
        print(f"epoch {epoch + 1}: validation accuracy {accuracy:.4f}")

    probabilities = predict(model, load_images("test_images.npy")).numpy()
    header = ",".join(["id", *map(str, range(classes))])
    rows = np.column_stack([np.arange(len(probabilities)), probabilities])
    np.savetxt("submission.csv", rows, fmt=["%d"] + ["%.6f"] * classes, delimiter=",", header=header, comments="")


if __name__ == "__main__":
    main()
