"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter, shuffled, table_text
from mlagentbench.tasks.ogbn_arxiv.grade import TABLE, UNNAMED

NETWORK = '''"""Train a perceptron on features that are averaged over the neighbours, and on the neighbours' known classes."""

import csv

import numpy as np
import torch
from torch import nn

CLASSES = 40
EPOCHS = 10


def load(name):
    return torch.from_numpy(np.load(f"graph/{name}.npy"))


def neighbours(edges, nodes):
    """The mean over a node's neighbours, citing or cited, as a sparse matrix."""
    pairs = torch.cat([edges, edges.flip(1)]).T
    ones = torch.ones(pairs.shape[1])
    degree = torch.zeros(nodes).index_add_(0, pairs[0], ones)
    return torch.sparse_coo_tensor(pairs, ones / degree[pairs[0]], (nodes, nodes)).coalesce()


def main():
    torch.manual_seed(0)
    features, edges = load("features"), load("edges")
    train_nodes, valid_nodes, test_nodes = (load(f"{part}_nodes") for part in ("train", "valid", "test"))
    train_labels, valid_labels = load("train_labels"), load("valid_labels")
    mean = neighbours(edges, len(features))

    known = torch.zeros(len(features), CLASSES)
    known[train_nodes, train_labels] = 1
    near = torch.sparse.mm(mean, known)
    hops = [features, torch.sparse.mm(mean, features)]
    hops.append(torch.sparse.mm(mean, hops[-1]))
    hops = [(hop - hop.mean(0)) / (hop.std(0) + 1e-6) for hop in hops]
    x = torch.cat([*hops, 4 * near, 4 * torch.sparse.mm(mean, near)], dim=1)

    model = nn.Sequential(nn.Dropout(0.3), nn.Linear(x.shape[1], 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for epoch in range(EPOCHS):
        model.train()
        for batch in torch.randperm(len(train_nodes)).split(64):
            loss = nn.functional.cross_entropy(model(x[train_nodes[batch]]), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x[valid_nodes]).argmax(1) == valid_labels).float().mean().item()
        print(f"epoch {epoch + 1}: validation accuracy {accuracy:.4f}")

    with torch.no_grad():
        found = model(x[test_nodes]).argmax(1)
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "pred"])
        writer.writerows(zip(test_nodes.tolist(), found.tolist()))


if __name__ == "__main__":
    main()
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true labels: by node, and as one column under either name."""
    best = TABLE.best(data)
    return {
        **TABLE.oracle(data),
        "one column": TABLE.files(best.select("pred")),
        "one column of pandas": TABLE.files(best.select(pl.col("pred").alias(UNNAMED))),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one class for all nodes, and the labels of other nodes."""
    most_frequent = int(np.bincount(np.load(data.public / "graph" / "train_labels.npy")).argmax())
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, pred=most_frequent),
        "shuffled column": TABLE.files(shuffled(TABLE.best(data), "node").select("pred")),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return files that are not tables of these nodes, or do not hold classes."""
    column = table_text(TABLE.best(data).select("pred"))
    columns = {
        "column too short": (column.rstrip("\n").rpartition("\n")[0] + "\n", "rows"),
        "column too long": (column + "0\n", "rows"),
        "column without header": ("7\n" + column.partition("\n")[2], "node"),
        "column of words": (column.replace("\n", "\ncs.LG\n", 1), "rows"),
    }
    return {
        **TABLE.invalid(data),
        "a class too many": Invalid(TABLE.first_row(data, "pred", "40"), "from 0 to 39"),
        "a negative class": Invalid(TABLE.first_row(data, "pred", "-1"), "from 0 to 39"),
        "between two classes": Invalid(TABLE.first_row(data, "pred", "3.5"), "a whole number"),
        **{case: Invalid({TABLE.file: content}, reason) for case, (content, reason) in columns.items()},
    }


def solution() -> Files:
    """Return a script whose network uses the nodes' neighbours."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return the starter with twice as many epochs, which the rules forbid and which gain little."""
    return edited_starter(__file__, {"EPOCHS = 10": "EPOCHS = 20"})
