"""Train a byte-level BPE tokenizer and a GPT-2 from scratch on the BabyLM text, and save both to the folder `model`."""

import math
import os
import random
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

DATA = Path("babylm_data")
OUTPUT = "model"
END = "<|endoftext|>"  # begins and ends every passage
PASSAGE = 2000  # characters
CONTEXT = 128  # tokens, or as many as the model can see
BATCH = 32  # blocks of so many tokens
EPOCHS = 8
LEARNING_RATE = 0.5  # over the model's width, at its highest
SEED = int(os.environ.get("SEED", "0"))

device = "cuda" if torch.cuda.is_available() else "cpu"


def read(folder):
    """The text of each source."""
    return [path.read_text(encoding="utf-8") for path in sorted((DATA / folder).iterdir())]


def split(text):
    """Cut a text into passages that end with a line, or with a word where a line is too long."""
    start = 0
    while start < len(text):
        end = start + PASSAGE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or text.rfind(" ", start, end) + 1 or end
        yield text[start:end]
        start = end


def train_tokenizer(texts, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    lines = (line for text in texts for line in text.splitlines(keepends=True))
    tokenizer.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END)


def to_tokens(tokenizer, texts):
    """All passages in one row of tokens, an end token between them."""
    passages = [passage for text in texts for passage in split(text)]
    encoded = tokenizer(passages, add_special_tokens=False, verbose=False)["input_ids"]
    end = tokenizer.eos_token_id
    return torch.tensor([end] + [token for ids in encoded for token in [*ids, end]])


def blocks(tokens, length):
    """Cut a row of tokens into blocks of one length; the rest is left out."""
    count = len(tokens) // length
    return tokens[: count * length].view(count, length)


@torch.no_grad()
def validate(model, tokens, texts, context):
    """Perplexity per word on the development text."""
    model.eval()
    total = 0.0
    for (batch,) in DataLoader(TensorDataset(blocks(tokens, context)), batch_size=32):
        batch = batch.to(device)
        total += model(batch, labels=batch).loss.item() * batch[:, 1:].numel()
    total *= (len(tokens) - 1) / (blocks(tokens, context)[:, 1:].numel())
    words = sum(len(text.split()) for text in texts)
    size = sum(len(text.encode()) for text in texts)
    print(f"development: perplexity per word {math.exp(total / words):.2f}, bits per byte {total / math.log(2) / size:.3f}")


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    config = GPT2Config.from_pretrained("gpt2")
    train_texts, dev_texts = read("babylm_10M"), read("babylm_dev")
    tokenizer = train_tokenizer(train_texts, config.vocab_size)
    train_tokens, dev_tokens = to_tokens(tokenizer, train_texts), to_tokens(tokenizer, dev_texts)
    print(f"{len(train_tokens):,} tokens for training, {len(dev_tokens):,} for validation")

    model = GPT2LMHeadModel(config).to(device)
    print(f"{model.num_parameters():,} parameters")
    context = min(CONTEXT, config.max_position_embeddings)
    loader = DataLoader(TensorDataset(blocks(train_tokens, context)), batch_size=BATCH, shuffle=True)
    highest, steps = LEARNING_RATE / config.hidden_size, EPOCHS * len(loader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=highest)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, highest, total_steps=steps, pct_start=0.1)
    for epoch in range(EPOCHS):
        model.train()
        for step, (batch,) in enumerate(loader):
            batch = batch.to(device)
            loss = model(batch, labels=batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 100 == 0:
                print(f"epoch {epoch + 1}, step {step} of {len(loader)}: loss {loss.item():.3f}")

    tokenizer.save_pretrained(OUTPUT)
    model.save_pretrained(OUTPUT)
    validate(model, dev_tokens, dev_texts, context)


if __name__ == "__main__":
    main()
