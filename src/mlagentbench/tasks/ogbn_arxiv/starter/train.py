"""Train a multilayer perceptron on the papers' features, and predict the subject areas of the test papers."""

import csv
import os

import numpy as np
import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
CLASSES = 40
HIDDEN = 256
EPOCHS = 10
BATCH_SIZE = 128
LEARNING_RATE = 2.0  # falls to 0 by the end


def load(name):
    """Read one of the graph's arrays as a tensor."""
    return torch.from_numpy(np.load(f"graph/{name}.npy"))


class MLP(nn.Module):
    """One hidden layer over a node's own features."""

    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def forward(self, x):
        """Map features of shape (nodes, inputs) to logits of shape (nodes, CLASSES)."""
        return self.layers(x)


def train_epoch(model, optimizer, schedule, x, y):
    """Go over the training nodes once, and return the mean loss."""
    model.train()
    batches = len(x) // BATCH_SIZE
    total = 0.0
    for batch in torch.randperm(len(x), device=x.device)[: batches * BATCH_SIZE].split(BATCH_SIZE):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    return total / batches


@torch.no_grad()
def predict(model, x):
    """Give the most probable class of each node."""
    model.eval()
    return model(x).argmax(dim=1)


def main():
    """Train, validate, and write the predictions for the test nodes."""
    torch.manual_seed(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    features = load("features").to(device)
    train_nodes, valid_nodes, test_nodes = (load(f"{part}_nodes") for part in ("train", "valid", "test"))
    train_labels, valid_labels = (load(f"{part}_labels").to(device) for part in ("train", "valid"))

    model = MLP(features.shape[1]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, EPOCHS * (len(train_nodes) // BATCH_SIZE))
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer, schedule, features[train_nodes], train_labels)
        accuracy = (predict(model, features[valid_nodes]) == valid_labels).float().mean().item()
        print(f"epoch {epoch + 1}: loss {loss:.4f}, validation accuracy {accuracy:.4f}")

    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "pred"])
        writer.writerows(zip(test_nodes.tolist(), predict(model, features[test_nodes]).tolist(), strict=True))


if __name__ == "__main__":
    main()
