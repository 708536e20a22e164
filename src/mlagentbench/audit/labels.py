"""Say what a number in a sentence is the number of: a result with its metric, or a setting, a count or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mlagentbench.audit.numbers import WrittenNumber

Split = Literal["train", "held_out"]

_METRICS = {
    "accuracy": r"accurac(?:y|ies)|\bacc\b",
    "loss": r"\b(?:log[- ]?|cross[- ]entropy )?loss(?:es)?\b",
    "mae": r"\bmae\b|mean absolute error",
    "rmse": r"\b(?:r?m?c?rmse|rmsle)\b|root mean squared? error",
    "mse": r"\bmse\b|mean squared error",
    "smape": r"\bs?mape\b",
    "f1": r"\bf1(?:[- ]score)?\b",
    "auc": r"\b(?:roc[- ]?)?auc\b",
    "map": r"\bmap(?:@\d+)?\b|mean average precision",
    "dice": r"\bdice\b",
    "iou": r"\biou\b",
    "precision": r"\bprecision\b",
    "recall": r"\brecall\b",
    "r2": r"\br2\b|r\^2|r²|r-squared",
    "perplexity": r"\bperplexity\b|\bppl\b",
    "bits": r"\bbits per \w+|\bbpc\b",
    "error": r"\berror(?: rate)?\b",
    "score": r"\bscores?\b|\bperformance\b",
    "speed": r"\bspeed[- ]?up\b|\bthroughput\b|\b(?:times|x|%) (?:faster|slower|as fast)\b|\bfaster\b",
    "time": r"\b(?:execution |run(?:ning)?[- ]?|wall[- ]?|training )?time\b|\btime taken\b|\bruntime\b|\blatency\b|\btook\b|\bseconds\b",
    "gain": r"\bimprovement\b|\bgains?\b|\b(?:better|higher|lower|worse)\b",
}
RELATIVE = frozenset({"speed", "gain"})
"""What is made of two results: their ratio or difference."""
LOWER_IS_BETTER = frozenset({"loss", "mae", "rmse", "mse", "smape", "perplexity", "bits", "error", "time"})

_SETTINGS = (
    r"learning[ _-]?rate|\blr\b|momentum|dropout|batch[ _-]?size|\bepochs?\b|weight[ _-]?decay|\bgamma\b|\balpha\b|\bbeta\w*|\blambda\b"
    r"|n_estimators|max_depth|\bdepth\b|hidden|\bunits?\b|neurons?|layers?|filters?|kernel|stride|padding|\bseed\b|threshold|random_state"
    r"|test_size|\bsplit\b|\bfolds?\b|temperature|regulari[sz]ation|warm-?up|\bclip|sigma|toleran|patience|dimension|embedding|\bstep size"
    r"|\bversion\b|\blines?\b|\bsteps?\b|iterations?|samples?|\brows?\b|columns?|features?|classes|images?|\bratio\b|probability of|\bstd\b"
    r"|\bsize\b|\bparameters?\b|rotation|degrees?|\bworkers?\b|\btrees?\b|\blimit\b|\bpoints?\b"
)
_KEYWORD = re.compile(
    "|".join([*(f"(?P<{name}>{pattern})" for name, pattern in _METRICS.items()), f"(?P<setting>{_SETTINGS})"]), re.IGNORECASE
)
_COUNTED = re.compile(rf"\s*-?(?:{_SETTINGS})", re.IGNORECASE)
_JOINED = re.compile(r"^[\s,;]*(?:to|and|vs\.?|versus|than|from|against|or|->|→|/|\()?[\s(]*$", re.IGNORECASE)
_DIRECT = re.compile(
    r"^[\s:=]*(?:(?:is|was|of|to|at|around|about|reached|the|now|still|a|an|as|approximately|dropped|rose|went|up|down)[\s:=]+)*$",
    re.IGNORECASE,
)
_TRAIN = re.compile(r"\btrain(?:ing)?\b", re.IGNORECASE)
_HELD_OUT = re.compile(r"\b(?:test|val(?:id)?|validation|dev|held[- ]out|public|private|cv|cross[- ]validation)\b", re.IGNORECASE)


class ResultLabel(NamedTuple):
    """The metric and the data split that a number belongs to."""

    metric: str | None
    """The metric's name here; None for a number that is not said to be a result."""
    split: Split | None
    direct: bool
    """True if only words such as `is` or `of` stand between the metric and the number."""


NOTHING = ResultLabel(None, None, False)


def label(text: str, found: Sequence[WrittenNumber], index: int) -> ResultLabel:
    """Say what a number in a text is the number of.

    The word for it is the nearest one before the number, up to the number before; or one just after it. Of numbers that are joined, as in
    `from 41.5% to 57.2%`, all are of what the first is of.

    Args:
        text: a sentence, or a line of output.
        found: its numbers, in order.
        index: the index of the number in question.
    """
    number = found[index]
    if _COUNTED.match(text, number.end) and not number.percent:
        return NOTHING
    start = found[index - 1].end if index else 0
    before = text[start : number.start]
    after = text[number.end : found[index + 1].start if index + 1 < len(found) else len(text)][:30]
    named = list(_KEYWORD.finditer(before))
    if named:
        last = named[-1]
        if last.lastgroup == "setting":
            return NOTHING
        if number.duration and last.lastgroup not in ("time", "speed"):
            return ResultLabel("time", None, True)
        split = _split(before) or (None if index else _split(text))  # the split of a line with one number, wherever it is named
        return ResultLabel(last.lastgroup, split, _DIRECT.match(before[last.end() :]) is not None)
    if index and _JOINED.match(before):
        joined = label(text, found, index - 1)
        if joined.metric:
            return joined
    if number.duration:
        return ResultLabel("time", _split(before), True)
    follows = _KEYWORD.search(after)
    if follows and follows.lastgroup != "setting":
        return ResultLabel(follows.lastgroup, _split(after), follows.start() <= 20)
    return NOTHING


def _split(text: str) -> Split | None:
    held_out, train = list(_HELD_OUT.finditer(text)), list(_TRAIN.finditer(text))
    if held_out and train:
        return "held_out" if held_out[-1].start() > train[-1].start() else "train"
    return "held_out" if held_out else "train" if train else None
