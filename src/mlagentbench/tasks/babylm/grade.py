"""Score a model by the probability that it gives to unseen text, by which models with different tokenizers can be compared.

A passage's probability is that of its tokens and of the end token after them. Distinct texts have distinct tokens, since each must decode
to its text, and none can be the beginning of another, since the end token comes only at the end. So the probabilities of all texts together
are at most 1, whatever the tokenizer does; other ways to encode the same text could only add to it, and are left out.

The model is loaded in a sandbox (`serve.py`) by the libraries' own code, which refuses models whose attention goes both ways. The sandbox's
answers are checked: that a prediction does not depend on later tokens, by changing these; and that probabilities are the softmax of all
logits, by computing some here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlagentbench import CodeClient, GradingContext, GradingError, InvalidSubmission, Score, ScriptLimits, SubmissionFiles, row_score
from mlagentbench.grading.code.protocol import Array
from mlagentbench.tasks.babylm.serve import ENCODE, LOAD, LOGITS, SCORE
from mlagentbench.tasks.babylm.windows import Tokens, Window, batches, padded, windows

SERVE = Path(__file__).with_name("serve.py")
MODEL_TYPES = (
    *("gpt2", "gpt_neo", "gpt_neox", "gptj", "opt", "llama", "mistral", "qwen2", "qwen3"),
    *("phi", "gemma", "gemma2", "olmo", "olmo2", "stablelm", "smollm3"),
)
"""Decoders that read from left to right: without experts for which tokens compete, and without attention to later tokens."""
READ = ("config.json", "tokenizer.json", "model.safetensors")
"""The only files that are copied into the sandbox."""
IGNORED = (".json", ".txt", ".jinja", ".md")
"""Endings of other files that the folder may hold."""
DROPPED = ("dtype", "torch_dtype", "_attn_implementation", "attn_implementation", "_attn_implementation_internal", "experts_implementation")
"""Keys of a config.json that choose an implementation and do not change the model."""

MAX_PARAMETERS = 200_000_000
MAX_VOCABULARY = 131_072
MAX_CONTEXT = 2048
MAX_JSON = 64 * 2**20
MAX_WEIGHTS = 4 * MAX_PARAMETERS + 2**26
BATCH_LOGITS = 2**27
"""The most logits of a batch; memory holds them in float32, and as much again for their softmax."""
BATCH_TOKENS = 8192

SECONDS = 3000.0
"""Seconds for all questions together, less than the task's limit for a grading."""
LOAD_SECONDS = 300.0
BATCH_SECONDS = 600.0
LIMITS = ScriptLimits(seconds=SECONDS, memory_mb=12288, processes=512, file_mb=16, workspace_mb=2048)
OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

LOOKS = 24
"""How many windows are checked for predictions that depend on later tokens."""
SOFTMAXES = 4
"""How many windows have some of their probabilities computed here, at `PLACES` places each."""
PLACES = 4
TOLERANCE = 2e-3
"""Nats by which two computations of one log-probability may differ; in float32 they do by about 1e-5."""
USUAL = 32.0
"""The size of log-probabilities up to which `TOLERANCE` holds; float32 rounds larger ones in proportion."""


def grade(context: GradingContext) -> Score:
    """Return the perplexity per word, with bits per byte in the details.

    Raises:
        InvalidSubmission: the folder holds a file that is not allowed, or its model or tokenizer breaks a rule.
    """
    lines = (context.private / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [str(json.loads(line)["text"]) for line in lines]
    config = _checked(context.submission)
    folder = _laid_out(context, config)
    rng = np.random.default_rng(context.seed)
    with context.sandbox(
        SubmissionFiles(folder),
        SERVE,
        packages=None,
        environment=OFFLINE,
        limits=LIMITS,
        max_code_bytes=MAX_WEIGHTS + 2 * MAX_JSON,
        kept=True,  # none of the agent's code runs in it
    ) as process:
        model = ServedModel(CodeClient(process, InvalidSubmission), config)
        rows = [model.encode(text) for text in texts]
        found = [window for row in rows for window in windows(row, model.context)]
        model.look_for_the_future(found, rng)
        model.look_at_softmax(found, rng)
        nats = model.score(found)
    passage = [number for number, row in enumerate(rows) for _ in windows(row, model.context)]
    per_passage = np.bincount(passage, weights=nats, minlength=len(texts))
    words_of = np.array([len(text.split()) for text in texts])
    total, words, size = float(per_passage.sum()), int(words_of.sum()), sum(len(text.encode()) for text in texts)
    if total / words > 700:
        raise InvalidSubmission("the model gives the test text almost no probability: its perplexity is no number; train it, or mend it")
    return row_score(
        np.stack([per_passage, words_of], axis=1),
        lambda means: np.exp(means[..., 0] / means[..., 1]),
        details={
            "bits_per_byte": total / math.log(2) / size,
            "nats": total,
            "words": words,
            "bytes": size,
            "passages": len(texts),
            "tokens": sum(map(len, rows)) - len(rows),
            "vocabulary": model.vocabulary,
            "parameters": model.parameters,
            "context": model.context,
            "model_type": config["model_type"],
            "isolation": context.isolation.isolation,
        },
    )


def _checked(submission: SubmissionFiles) -> dict[str, Any]:
    """Check that the folder holds only files that are allowed, and no code; return the model's config."""
    for name in submission.names():
        path = Path(name).relative_to("model")
        if str(path) not in READ and path.suffix not in IGNORED:
            raise InvalidSubmission(
                f"{name} must not be there: leave model.safetensors, and files ending in {', '.join(IGNORED)}; pickled weights and code"
                " are not read (save_pretrained writes none)"
            )
    config = _json(submission, "model/config.json")
    for name in [name for name in submission.names() if name.endswith("config.json")]:
        if "auto_map" in _json(submission, name):
            raise InvalidSubmission(f"{name} has an auto_map: code of your own is not run; use a class of transformers")
    if config.get("model_type") not in MODEL_TYPES:
        raise InvalidSubmission(f"config.json has the model_type {config.get('model_type')!r}; use one of {', '.join(MODEL_TYPES)}")
    if config.get("quantization_config"):
        raise InvalidSubmission("config.json has a quantization_config; save the weights as they are, in float32 or bfloat16")
    for key in ("bos_token_id", "eos_token_id"):
        if not isinstance(config.get(key), int) or isinstance(config.get(key), bool):
            raise InvalidSubmission(f"config.json has no {key}: passages begin with it or end with it; set it to the id of a token")
    return config


def _json(submission: SubmissionFiles, name: str) -> dict[str, Any]:
    try:
        found = json.loads(submission.read_text(name, MAX_JSON))
    except (ValueError, RecursionError) as error:
        raise InvalidSubmission(f"{name} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidSubmission(f"{name} is no JSON object; leave it as save_pretrained wrote it")
    return found


def _laid_out(context: GradingContext, config: dict[str, Any]) -> Path:
    """Copy the three files that are read into a folder, and return it."""
    folder = context.scratch / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key not in DROPPED}))
    (folder / "tokenizer.json").write_bytes(context.submission.read_bytes("model/tokenizer.json", MAX_JSON))
    with context.submission.open("model/model.safetensors", MAX_WEIGHTS) as source, (folder / "model.safetensors").open("wb") as target:
        while piece := source.read(2**22):
            target.write(piece)
    return folder


class ServedModel:
    """The agent's model and tokenizer in their sandbox.

    Args:
        talk: asks the process that serves them, first of all to load them.
        config: the model's config.
    """

    def __init__(self, talk: CodeClient, config: dict[str, Any]) -> None:
        self._talk = talk
        loaded = talk.ask(LOAD, doing="loading the model", seconds=LOAD_SECONDS, count=1, max_values=4).arrays[0]
        known, entries, self.parameters, longest = map(int, loaded)
        if self.parameters > MAX_PARAMETERS:
            raise InvalidSubmission(f"the model has {self.parameters:,} parameters, more than {MAX_PARAMETERS:,}")
        if max(known, entries) > MAX_VOCABULARY:
            raise InvalidSubmission(f"there are {max(known, entries):,} tokens, more than {MAX_VOCABULARY:,}")
        for key in ("bos_token_id", "eos_token_id"):
            if not 0 <= config[key] < known:
                raise InvalidSubmission(
                    f"config.json has the {key} {config[key]}, but the model knows {known:,} tokens; set it to one of them"
                )
        if longest == 1:
            raise InvalidSubmission("the model reads one token at a time; give it max_position_embeddings of 2 or more")
        self.vocabulary, self._begin, self._end = known, config["bos_token_id"], config["eos_token_id"]
        self.context = min(longest or MAX_CONTEXT, MAX_CONTEXT)

    def encode(self, text: str) -> Tokens:
        """Return a passage's tokens, from the begin token to the end token.

        Raises:
            InvalidSubmission: the tokens do not decode to the passage, the model does not know them, or one is the end token.
        """
        points = np.array([ord(character) for character in text], dtype=np.float64)
        answer = self._talk.ask(
            ENCODE, (points,), doing="encoding a passage", seconds=BATCH_SECONDS, count=2, max_values=32 * len(text) + 1024
        )
        ids, decoded = answer.arrays
        if not np.array_equal(decoded, points):
            raise InvalidSubmission(_lossy(text, decoded))
        tokens = ids.astype(np.int64)
        if tokens.size == 0 or tokens.min() < 0 or tokens.max() >= self.vocabulary:
            raise InvalidSubmission(
                f"the tokenizer makes tokens up to {int(tokens.max(initial=0))}, but the model knows {self.vocabulary:,};"
                " train it with a vocab_size that holds them all"
            )
        if (tokens == self._end).any():
            raise InvalidSubmission("the tokenizer uses the end token (eos_token_id) inside of a passage; keep one that stands for no text")
        return np.concatenate(([self._begin], tokens, [self._end]))

    def score(self, found: Sequence[Window]) -> Array:
        """Return the negative log-probability of the tokens that each window predicts, in nats: (windows,)."""
        nats = np.empty(len(found))
        for batch in batches(found, min(BATCH_TOKENS, max(1, BATCH_LOGITS // self.vocabulary))):
            windows_of = [found[number] for number in batch]
            predicted = self._predict([window.inputs for window in windows_of], [window.targets for window in windows_of])
            for number, window, row in zip(batch, windows_of, predicted, strict=True):
                nats[number] = -row[window.scored : len(window.inputs)].sum()
        return nats

    def look_for_the_future(self, found: Sequence[Window], rng: np.random.Generator) -> None:
        """Check that predictions stay the same when later tokens change.

        Raises:
            InvalidSubmission: they do not.
        """
        for place in rng.choice(len(found), min(LOOKS, len(found)), replace=False):
            window = found[place]
            if len(window.inputs) < 2:
                continue
            cut = int(rng.integers(1, len(window.inputs)))
            other = window.inputs.copy()
            other[cut:] = rng.integers(0, self.vocabulary, len(other) - cut)
            same, changed = self._predict([window.inputs, other], [window.targets, window.targets])[:, :cut]
            if _differ(same, changed, np.maximum(np.abs(same), np.abs(changed))):
                raise InvalidSubmission(
                    "the model looks ahead: its prediction of a token changes with the tokens after it; use a causal model, one that"
                    " reads from left to right"
                )

    def look_at_softmax(self, found: Sequence[Window], rng: np.random.Generator) -> None:
        """Compute some log-probabilities from all the logits, and check that they are those that the sandbox gives.

        Raises:
            GradingError: they differ, which is no fault of the submission: the sandbox runs none of the agent's code.
        """
        for place in rng.choice(len(found), min(SOFTMAXES, len(found)), replace=False):
            window = found[place]
            places = rng.choice(len(window.inputs), min(PLACES, len(window.inputs)), replace=False)
            logits = self._talk.ask(
                LOGITS,
                (window.inputs[None].astype(np.float64), places.astype(np.float64)),
                doing="predicting a passage",
                seconds=BATCH_SECONDS,
                count=1,
                max_values=len(places) * self.vocabulary,
            ).arrays[0]
            if logits.shape != (len(places), self.vocabulary):
                raise InvalidSubmission(f"the model gives logits of shape {logits.shape} at {len(places)} places")
            given = self._predict([window.inputs], [window.targets])[0, places]
            highest = logits.max(axis=1)
            worked_out = logits[np.arange(len(places)), window.targets[places]] - highest
            worked_out -= np.log(np.exp(logits - highest[:, None]).sum(axis=1))
            if _differ(worked_out, given, np.abs(worked_out)):
                raise GradingError("the probabilities from the sandbox are not the softmax of the logits from there")

    def _predict(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> Array:
        """Return the log-probabilities of the targets: (rows, the longest row)."""
        length = max(map(len, inputs))
        pair = tuple(padded(rows, length).astype(np.float64) for rows in (inputs, targets))
        count = len(inputs) * length
        answer = self._talk.ask(SCORE, pair, doing="predicting a passage", seconds=BATCH_SECONDS, count=1, max_values=count)
        if answer.arrays[0].shape != (len(inputs), length):
            raise InvalidSubmission("the model gives predictions of another shape than its inputs")
        if not np.isfinite(answer.arrays[0]).all():
            raise InvalidSubmission("the model gives probabilities that are not finite; its weights may hold NaN or infinite numbers")
        return answer.arrays[0]


def _differ(some: Array, others: Array, sizes: Array) -> bool:
    """Return whether log-probabilities of some sizes differ by more than rounding explains."""
    return not (np.abs(some - others) <= TOLERANCE * np.maximum(1, sizes / USUAL)).all()


def _lossy(text: str, decoded: Array) -> str:
    """Describe how the decoded text differs from the passage, without quoting the passage, which is secret."""
    kept = len(decoded)
    points = np.array([ord(character) for character in text], dtype=np.float64)
    shorter = min(kept, len(points))
    differ = np.flatnonzero(decoded[:shorter] != points[:shorter])
    where = int(differ[0]) if differ.size else shorter
    kind = (
        "the end" if where >= len(text) else "white space" if text[where].isspace() else "a letter" if text[where].isalpha() else "a sign"
    )
    return (
        f"the tokenizer does not give back the text: of a passage of {len(text):,} characters {kept:,} come back, and {kind} is the first"
        " to differ; decode(encode(text)) must equal the text, so use byte-level BPE without a normalizer, and a decoder that fits"
    )
