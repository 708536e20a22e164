"""The language model's grader: what a text's probability is, whoever cut it into tokens, and who cannot make it larger."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.task.catalogue import Task
from mlagentbench.task.proofs import Files
from mlagentbench.tasks.babylm import prepare, proof
from mlagentbench.tasks.babylm.grade import MODEL_TYPES, _checked
from mlagentbench.tasks.babylm.windows import Window, batches, padded, windows
from tests.mirror import Mirror

TEXTS = ["The dog saw a cat .\nIt ran away .\n", "Naïve café: “déjà vu” 🐕\tand more\n\n", "x" * 150]


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A test part of three odd passages, without which a grading takes longer."""
    folder = tmp_path / "data" / "private"
    folder.mkdir(parents=True)
    lines = [json.dumps({"source": "cbt", "text": text}) for text in TEXTS]
    (folder / "passages.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def laid(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def graded(task: Task, folder: Path, private: Path) -> Graded:
    return asyncio.run(grade(task, folder, variant="mini", private=private, seed=0))


def test_every_token_is_predicted_once_with_half_a_context_before_it() -> None:
    for length in (2, 3, 10, 11, 57, 128, 129):
        for context in (2, 3, 10, 64, 500):
            row = np.arange(length)
            predicted = []
            for window in windows(row, context):
                assert len(window.inputs) <= context and (window.targets == window.inputs + 1).all()
                for place in range(window.scored, len(window.inputs)):
                    target = int(window.targets[place])
                    assert place + 1 >= min(target, context // 2)
                    predicted.append(target)
            assert predicted == list(range(1, length))


def test_batches_hold_every_window_and_no_more_tokens_than_fit() -> None:
    found = [Window(np.arange(length), np.arange(length), 0) for length in (5, 1, 9, 9, 3, 20)]
    parts = list(batches(found, 20))
    assert sorted(number for batch in parts for number in batch) == list(range(6))
    assert all(len(batch) == 1 or len(batch) * max(len(found[number].inputs) for number in batch) <= 20 for batch in parts)
    assert padded([np.array([1, 2]), np.array([3])], 3).tolist() == [[1, 2, 0], [3, 0, 0]]


def test_passages_join_to_the_text_and_end_with_lines() -> None:
    text = "".join(f"{'word ' * (number % 700)}end of line {number}\n" for number in range(300)) + "y" * 5000
    pieces = list(prepare.passages(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= prepare.PASSAGE
    assert all(piece[-1] in "\n " or piece.strip("y") == "" for piece in pieces)


def test_the_score_is_what_the_library_gives_token_by_token(task: Task, private: Path, tmp_path: Path) -> None:
    """A model of random weights whose context is shorter than a passage, worked out here without batches, windows or padding in common."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.GPT2Config(vocab_size=257, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "submission" / "model")
    (tmp_path / "submission" / "model" / "tokenizer.json").write_text(proof._tokenizer())
    (tmp_path / "submission" / "model" / "tokenizer_config.json").write_text("{}")
    found = graded(task, tmp_path / "submission", private)
    assert found.score is not None, found.reason

    number = {byte: place for place, byte in enumerate(proof._alphabet().values(), start=1)}
    total = 0.0
    for text in TEXTS:
        row = [0, *(number[byte] for byte in text.encode()), 0]
        for place in range(1, len(row)):
            start = 0 if place <= 64 else 32 * math.ceil((place - 64) / 32)
            with torch.inference_mode():
                logits = model(torch.tensor([row[start:place]])).logits[0, -1].double()
            total -= float(torch.log_softmax(logits, dim=-1)[row[place]])
    words = sum(len(text.split()) for text in TEXTS)
    assert found.score.details["words"] == words
    assert found.score.value == pytest.approx(math.exp(total / words), rel=1e-4)
    size = sum(len(text.encode()) for text in TEXTS)
    assert found.score.details["bits_per_byte"] == pytest.approx(total / math.log(2) / size, rel=1e-4)


def test_a_text_pays_for_its_end_and_for_each_of_its_tokens(task: Task, private: Path, tmp_path: Path) -> None:
    """All 257 tokens alike: log 257 for each byte, and for the end. So a tokenizer cannot hide anything in how many tokens it makes."""
    pytest.importorskip("transformers")
    found = graded(task, laid(tmp_path / "submission", proof._model(np.zeros(257), proof._tokenizer())), private)
    assert found.score is not None, found.reason
    tokens = sum(len(text.encode()) + 1 for text in TEXTS)
    assert found.score.details["nats"] == pytest.approx(tokens * math.log(257), rel=1e-5)


def test_a_model_is_refused_for_its_huge_logits_and_not_for_how_they_are_rounded(task: Task, private: Path, tmp_path: Path) -> None:
    """In float32 the softmax of numbers this large is right to some nats only."""
    pytest.importorskip("transformers")
    logits = 1e6 * np.random.default_rng(0).normal(size=257)
    found = graded(task, laid(tmp_path / "submission", proof._model(logits, proof._tokenizer())), private)
    assert "gives the test text almost no probability" in (found.reason or "")


def test_logits_too_large_to_be_told_apart_are_as_likely_as_they_are_many(task: Task, private: Path, tmp_path: Path) -> None:
    """A sum of such numbers' exponentials has, in float32, the logarithm of one of them: each token would have the probability 1."""
    pytest.importorskip("transformers")
    found = graded(task, laid(tmp_path / "submission", proof._model(np.full(257, 1e8), proof._tokenizer())), private)
    assert found.score is not None, found.reason
    assert found.score.details["nats"] == pytest.approx(sum(len(text.encode()) + 1 for text in TEXTS) * math.log(257), rel=1e-5)


def test_a_model_that_may_look_ahead_is_refused_however_little_it_does(task: Task, private: Path, tmp_path: Path) -> None:
    """Its attention weighs too little for a change of what comes later to show; one that looks ahead at rare tokens alone gains much."""
    numpy = pytest.importorskip("safetensors.numpy")
    files = proof._looks_ahead()
    assert isinstance(files["model/model.safetensors"], bytes)
    weights = {name: (1e-6 if "o_proj" in name else 1) * array for name, array in numpy.load(files["model/model.safetensors"]).items()}
    config = {key: value for key, value in json.loads(files["model/config.json"]).items() if key != "is_causal"}
    faint = {
        "model/config.json": json.dumps({**config, "attribute_map": {"hint": "is_causal"}, "hint": False}),
        "model/model.safetensors": numpy.save(
            {name: array.astype(np.float32) for name, array in weights.items()}, metadata={"format": "pt"}
        ),
        "model/tokenizer.json": proof._tokenizer(),
    }
    found = graded(task, laid(tmp_path / "submission", faint), private)
    assert found.score is None and found.reason is not None and "looks ahead" in found.reason


def test_a_text_in_the_decoder_is_no_other_text(task: Task, private: Path, tmp_path: Path) -> None:
    """One token that the decoder writes out as a whole text; no other text can be written with it."""
    pytest.importorskip("transformers")
    tokenizer = json.loads(proof._tokenizer())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"Regex": r"[\s\S]+"}, "content": "a"}
    tokenizer["decoder"] = {
        "type": "Sequence",
        "decoders": [tokenizer["decoder"], {"type": "Replace", "pattern": {"String": "a"}, "content": TEXTS[0]}],
    }
    found = graded(task, laid(tmp_path / "submission", proof._model(np.zeros(257), json.dumps(tokenizer))), private)
    assert found.score is None and found.reason is not None and "does not give back the text" in found.reason


@pytest.mark.slow
def test_tokens_that_stand_for_nothing_are_paid_for(task: Task, private: Path, tmp_path: Path) -> None:
    """A decoder that drops a token which the encoder puts everywhere gives back the text, and gains nothing."""
    pytest.importorskip("transformers")
    tokenizer = json.loads(proof._tokenizer())
    tokenizer["normalizer"] = {"type": "Prepend", "prepend": "\u241f"}
    tokenizer["decoder"] = {
        "type": "Sequence",
        "decoders": [tokenizer["decoder"], {"type": "Replace", "pattern": {"String": "\u241f"}, "content": ""}],
    }
    found = graded(task, laid(tmp_path / "submission", proof._model(np.zeros(257), json.dumps(tokenizer))), private)
    assert found.score is not None, found.reason
    plain = sum(len(text.encode()) + 1 for text in TEXTS) * math.log(257)
    assert float(str(found.score.details["nats"])) > plain


def test_what_computes_differently_is_not_the_agents_to_choose(tmp_path: Path) -> None:
    fine = proof._model(np.zeros(257), "{}")
    config: dict[str, Any] = json.loads(fine["model/config.json"])
    for changes, reason in (
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"model_type": "gpt2-mine"}, "model_type"),
        ({"bos_token_id": "0"}, "bos_token_id"),
        ({"eos_token_id": [0, 1]}, "eos_token_id"),
        ({"eos_token_id": True}, "eos_token_id"),
    ):
        files = {**fine, "model/config.json": json.dumps({**config, **changes})}
        with pytest.raises(InvalidSubmission, match=reason):
            _checked(SubmissionFiles(laid(tmp_path / reason, files)))
    hidden = {**fine, "model/deep/er/weights.pt": b"\x80\x04."}
    with pytest.raises(InvalidSubmission, match=r"deep/er/weights\.pt must not be there"):
        _checked(SubmissionFiles(laid(tmp_path / "hidden", hidden)))
    elsewhere = {**fine, "model/tokenizer_config.json": json.dumps({"auto_map": {"AutoTokenizer": ["mine.Mine", None]}})}
    with pytest.raises(InvalidSubmission, match=r"tokenizer_config\.json has an auto_map"):
        _checked(SubmissionFiles(laid(tmp_path / "elsewhere", elsewhere)))


def test_the_challenges_files_become_the_tasks(task: Task, mirror: Mirror, tmp_path: Path) -> None:
    base = f"https://huggingface.co/datasets/{prepare.REPOSITORY}/resolve/{prepare.REVISION}/original"
    lines = {part: "".join(f"{part} line {number} — with words\n" for number in range(400)) for part in ("10M", "dev", "test")}
    for part, text in lines.items():
        for source in prepare.SOURCES:
            mirror.add(f"{base}/{part}/{source}.txt", f"{source}\n{text}".encode())
    data = Prepared(tmp_path / "public", tmp_path / "private")
    for folder in data:
        assert folder is not None
        folder.mkdir()
    prepare.full(tmp_path / "public", tmp_path / "private")
    names = sorted(path.relative_to(tmp_path / "public").as_posix() for path in (tmp_path / "public").rglob("*") if path.is_file())
    assert len(names) == 21 and "babylm_data/babylm_10M/aochildes.train" in names and "babylm_data/babylm_dev/qed.dev" in names
    assert (tmp_path / "public/babylm_data/babylm_dev/qed.dev").read_text() == f"qed\n{lines['dev']}"
    passages = [json.loads(line) for line in (tmp_path / "private/passages.jsonl").read_text().splitlines()]
    assert {passage["source"] for passage in passages} == set(prepare.SOURCES)
    assert all("test line" in passage["text"] and "10M" not in passage["text"] for passage in passages)


def test_the_sample_has_each_source_in_proportion() -> None:
    found = {"large": [f"{number:04} " + "x" * 1500 for number in range(9000)], "small": ["y" * 10] * 3}
    chosen = prepare._sample(found)
    assert len(chosen["large"]) == prepare.PASSAGES and len(chosen["small"]) == 1
    assert chosen["large"][0].startswith("0000") and chosen["large"][-1].startswith("8999")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODEL_TYPES)
def test_the_kinds_of_model_read_from_left_to_right(name: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    names: dict[str, Any] = dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, pad_token_id=0
    )
    more = {"gptj": {"rotary_dim": 4}, "gpt_neo": {"attention_types": [[["global", "local"], 1]]}, "opt": {"word_embed_proj_dim": 32}}
    config = transformers.AutoConfig.for_model(name, vocab_size=90, bos_token_id=0, eos_token_id=0, **{**names, **more.get(name, {})})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    first = torch.randint(1, 90, (1, 30))
    second = torch.cat((first[:, :15], torch.randint(1, 90, (1, 15))), dim=1)
    with torch.inference_mode():
        difference = (model(first).logits - model(second).logits).abs()
    assert difference[:, :15].max() < 1e-4 < difference[:, 15:].max()
    assert model.config.max_position_embeddings == 32 and model.get_output_embeddings().weight.shape[0] == 90
