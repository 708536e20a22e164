"""Train the model to run the Floyd-Warshall algorithm on small graphs, and write its checkpoint."""

import os

import numpy as np
import torch
from model import Model, hints_of, save
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

HIDDEN_DIM = 32
EPOCHS_PER_STEP = 4  # a run of the algorithm on n nodes has n - 1 steps to learn, so larger graphs are trained for more epochs
BATCH_SIZE = 64
LEARNING_RATE = 1e-2
SEED = int(os.environ.get("SEED", "0"))

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read(name):
    """The runs of a data set, by the benchmark's names: inputs, hints (steps first) and output."""
    with np.load(f"data/{name}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def tensor(array):
    return torch.as_tensor(array, dtype=torch.float32, device=DEVICE)


def loss_of(model, data, index, pos):
    """The benchmark's loss: of the output, and of the hints at every step, each the mean over what it predicts."""
    hints = hints_of(data, index, DEVICE)
    output, predicted = model(tensor(pos), tensor(data["A"][index]), tensor(data["adj"][index]), hints)
    pointers = torch.as_tensor(data["Pi"][index], dtype=torch.long, device=DEVICE)
    loss = cross_entropy(output.flatten(0, 2), pointers.flatten())
    for guess, truth in zip(predicted, hints[1:], strict=True):
        step = cross_entropy(guess.Pi_h.flatten(0, 2), truth.Pi_h.flatten(0, 2).argmax(-1))
        step = step + mse_loss(guess.D, truth.D) + binary_cross_entropy_with_logits(guess.msk, truth.msk)
        loss = loss + (step + cross_entropy(guess.k, truth.k)) / len(predicted)
    return loss


def accuracy(model, data):
    """The share of pointers that the model gets right, going on from its own hints."""
    return (model.predict(tensor(data["A"])).cpu().numpy() == data["Pi"]).mean()


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the tensors are small: more threads would mostly wait for each other
    rng = np.random.default_rng(SEED)
    train, val = read("train"), read("val")
    count, nodes = train["pos"].shape
    batches, epochs = count // BATCH_SIZE, EPOCHS_PER_STEP * (nodes - 1)
    model = Model(HIDDEN_DIM).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=epochs * batches)
    for epoch in range(epochs):
        losses = []
        for index in np.array_split(rng.permutation(count), batches):
            # Random positions in the same order: graphs with more nodes have others than these.
            pos = np.sort(rng.random((len(index), nodes)))
            optimizer.zero_grad()
            loss = loss_of(model, train, index, pos)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, validation accuracy {accuracy(model, val):.3f}", flush=True)
    save(model, "checkpoint.npz")


if __name__ == "__main__":
    main()
