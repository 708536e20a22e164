"""Film reviews: the metric, the real files' order kept from the agent, and a model that the libraries take for a DistilBERT."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.imdb import prepare
from mlagentbench.tasks.imdb.reviews import BLAME, PRAISE
from tests.mirror import Mirror
from tests.tasks.by_hand import folders, score


@pytest.fixture(scope="module")
def public(data: Prepared) -> Path:
    return data.public


def table(answers: pl.DataFrame, positive: Sequence[float], negative: Sequence[float] | None = None) -> pl.DataFrame:
    return pl.DataFrame({"idx": answers["idx"], "negative": negative or [1 - value for value in positive], "positive": positive})


def test_the_score_is_the_accuracy_of_the_more_probable_class(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    positive = np.random.default_rng(1).random(len(answers)).round(4)
    found = score(task, data, table(answers, positive.tolist()), tmp_path)
    right = sum((value > 0.5) == bool(label) for value, label in zip(positive, answers["label"], strict=True))
    assert found.value == right / len(answers)
    metrics = pytest.importorskip("sklearn.metrics")
    assert found.value == pytest.approx(metrics.accuracy_score(answers["label"], np.stack([1 - positive, positive]).argmax(axis=0)))


def test_rows_are_found_by_idx_and_the_class_by_its_column(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    right = table(answers, answers["label"].to_list())
    assert score(task, data, right.sample(fraction=1, shuffle=True, seed=2), tmp_path / "a").value == 1
    assert score(task, data, right.select("positive", "idx", "negative"), tmp_path / "b").value == 1
    assert score(task, data, right.rename({"positive": "negative", "negative": "positive"}), tmp_path / "c").value == 0


def test_probabilities_as_half_precision_rounds_them_are_taken(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    positive = np.random.default_rng(1).random(len(answers)).astype(np.float16)
    negative = (1 - positive.astype(np.float32)).astype(np.float16)
    score(task, data, table(answers, positive.tolist(), negative.tolist()), tmp_path)


def test_numbers_that_are_no_probabilities_are_refused_by_their_row(
    task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path
) -> None:
    positive = [0.25] * len(answers)
    negative = [0.75] * len(answers)
    negative[7] = 0.7
    with pytest.raises(InvalidSubmission, match=r"0\.7 and 0\.25 in the row of 7; .*1 together"):
        score(task, data, table(answers, positive, negative), tmp_path)


def real(mirror: Mirror, reviews: int) -> dict[str, pl.DataFrame]:
    """What Hugging Face holds, smaller: reviews with the negative ones first, and the model's files."""
    found = {}
    for split, file in prepare.SPLITS.items():
        texts = [f'{split} {number}: "solution",<br /><br />or\nso, they said — café' for number in range(reviews)]
        found[split] = pl.DataFrame({"text": texts, "label": [int(number >= reviews // 2) for number in range(reviews)]})
        held = mirror.root / "huggingface.co/datasets/stanfordnlp/imdb/resolve" / prepare.REVIEWS[1] / file
        held.parent.mkdir(parents=True, exist_ok=True)
        found[split].write_parquet(held)
    for file in prepare.MODEL_FILES:
        held = mirror.root / "huggingface.co/distilbert/distilbert-base-uncased/resolve" / prepare.MODEL[1] / file
        held.parent.mkdir(parents=True, exist_ok=True)
        held.write_text(f"{file} as it is\n")
    return found


def test_the_real_files_become_the_same_layout_with_their_labels_withheld(mirror: Mirror, tmp_path: Path, public: Path) -> None:
    held = real(mirror, 60)
    made = folders(tmp_path / "made")
    prepare.full(made.public, made.private)
    names = [{path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} for root in (made.public, public)]
    assert names[0] == names[1]
    for file in prepare.MODEL_FILES:
        assert (made.public / "distilbert" / file).read_text() == f"{file} as it is\n"

    test = pl.read_csv(made.public / "data" / "test.csv")
    answers = pl.read_csv(made.private / "answers.csv")
    assert test.columns == ["idx", "text"] and test["idx"].to_list() == answers["idx"].to_list() == list(range(60))
    assert test.join(answers, on="idx").select("text", "label").sort("text").equals(held["test"].sort("text")), (
        "each label is still its text's"
    )
    assert 10 < answers["label"].head(30).sum() < 20, "the labels do not lie in the original's order"
    train = pl.read_csv(made.public / "data" / "train.csv")
    assert train.columns == ["idx", "text", "label"] and set(train["text"]) == set(held["train"]["text"])


def test_single_words_tell_little_of_a_made_up_review_and_pairs_much(public: Path, answers: pl.DataFrame) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    train, test = (pl.read_csv(public / "data" / f"{split}.csv") for split in ("train", "test"))
    accuracy = []
    for length in (1, 2):
        counts = text.CountVectorizer(ngram_range=(1, length), token_pattern=r"\w+")
        model = linear.LogisticRegression(max_iter=500, C=0.3).fit(counts.fit_transform(train["text"]), train["label"])
        accuracy.append(model.score(counts.transform(test["text"]), answers["label"]))
    assert accuracy[0] < 0.75 and accuracy[1] > 0.83
    words = " ".join(test.join(answers, on="idx").filter(pl.col("label") == 1)["text"]).lower().replace(".", "").split()
    assert sum(words.count(word) for word in BLAME) > 0.5 * sum(words.count(word) for word in PRAISE)


def test_no_review_is_in_both_parts(public: Path) -> None:
    train, test = (pl.read_csv(public / "data" / f"{split}.csv")["text"] for split in ("train", "test"))
    assert not set(train) & set(test)


def test_the_small_model_is_one_that_the_libraries_load_and_know_every_word_with(public: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = public / "distilbert"
    config = json.loads((folder / "config.json").read_text())
    vocabulary = (folder / "vocab.txt").read_text().splitlines()
    assert len(set(vocabulary)) == len(vocabulary) == config["vocab_size"]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for part in ("train", "test"):
        for encoding in tokenizer.encode_batch(pl.read_csv(public / "data" / f"{part}.csv")["text"].to_list()):
            assert encoding.tokens[0] == "[CLS]" and encoding.tokens[-1] == "[SEP]" and "[UNK]" not in encoding.tokens
    assert tokenizer.encode("The dullest; gripping!").tokens == ["[CLS]", "the", "dull", "##e", "##s", "##t", ";", "gripping", "!", "[SEP]"]
    weights = safetensors.load_file(folder / "model.safetensors")
    assert weights["distilbert.embeddings.word_embeddings.weight"].shape == (len(vocabulary), config["dim"])


@pytest.mark.slow
def test_the_small_model_is_loaded_by_the_starters_own_calls_with_no_weight_left_over(public: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = str(public / "distilbert")
    masked, about = transformers.AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"] and not about["mismatched_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(masked).__name__ == "DistilBertForMaskedLM" and tokenizer.model_max_length == masked.config.max_position_embeddings
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    inputs = tokenizer(["The plot was not dull."] * 3, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        assert model(**inputs).logits.shape == (3, 2)
