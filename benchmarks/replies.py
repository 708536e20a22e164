"""How replies are read: accepted, refused by reason, and changed without a word, per file and model.

    python benchmarks/replies.py [--each] real_completions.jsonl parse_cases.jsonl

A line of a file is a JSON object: a reply as `text` or `completion`, perhaps with its `model`, perhaps with an `expected_action` and
`expected_args` (null where no arguments can be read, so that the reply is to be refused); the files of the tests, with `reply` and either
`action` and `arguments` or `refused`, are read too. A reply counts as changed where its action or
an argument is not the expected one, or, without an expectation, where an argument does not stand in the reply as it was read.
The actions are the paper's.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench.agents.reply.response import Response, parse_response
from mlagentbench.errors import ResponseFormatError

ACTIONS = Path(__file__).parent.parent / "tests" / "agents" / "data" / "paper_actions.json"
ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought")
REASONS = {
    "holds no action": "no action",
    "There is no action": "unknown action",
    "and there is none": "no arguments",
    "cannot be read": "broken or ambiguous arguments",
    "does not fit": "wrong arguments",
    "only shown as an example": "example only",
    "The reply lacks": "missing entries",
}


class PaperParameter(NamedTuple):
    type: type
    required: bool = True


class PaperAction(NamedTuple):
    parameters: Mapping[str, PaperParameter]
    hidden: bool = False

    @property
    def usage(self) -> str:
        return json.dumps({name: f"[{parameter.type.__name__}]" for name, parameter in self.parameters.items()})


def paper_actions() -> dict[str, PaperAction]:
    types = {"str": str, "int": int}
    table = json.loads(ACTIONS.read_text())
    return {name: PaperAction({key: PaperParameter(types[kind]) for key, kind in keys.items()}) for name, keys in table.items()}


class Verdict(NamedTuple):
    model: str
    outcome: str
    detail: str


def judge(row: Mapping[str, Any], actions: Mapping[str, PaperAction]) -> Verdict:
    """What came of one reply."""
    text = row.get("text") or row.get("completion") or row.get("reply") or ""
    if "reply" in row:
        row = {**row, "expected_action": row.get("action"), "expected_args": row.get("arguments")}
    model = str(row.get("model", "-"))
    try:
        response = parse_response(text, ENTRIES, actions)
    except ResponseFormatError as refusal:
        first = str(refusal).splitlines()[0]
        reason = next((reason for part, reason in REASONS.items() if part in first), "other")
        wanted = " (but an action was expected)" if row.get("expected_args") is not None else ""
        return Verdict(model, reason + wanted, first)
    detail = f"{response.action} {json.dumps(dict(response.arguments), ensure_ascii=False)}"
    return Verdict(model, "changed" if changed(response, row, text) else "accepted", detail)


def changed(response: Response, row: Mapping[str, Any], text: str) -> bool:
    """Whether the response is another than the reply's author wrote."""
    if "expected_action" in row:
        return (response.action, response.arguments) != (row["expected_action"], row["expected_args"])
    return any(not stands(key, value, text) for key, value in response.arguments.items())


def stands(key: str, value: Any, text: str) -> bool:
    """Whether a key and its value stand in a reply, the value as JSON writes it or as it is."""
    forms = {json.dumps(value), json.dumps(value, ensure_ascii=False), str(value)}
    label = r"[\W_]{0,3}".join(re.escape(word) for word in key.split("_"))
    return any(re.search(rf"{label}[\"']?\s*:\s*[\"']?{re.escape(form)}[\"']?\s*[,}}]", text, re.IGNORECASE) for form in forms)


def verdicts(path: Path) -> Iterator[Verdict]:
    actions = paper_actions()
    for line in path.read_text(encoding="utf-8").splitlines():
        yield judge(json.loads(line), actions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="print what came of each reply, too")
    options = parser.parse_args()
    for path in options.files:
        started = time.perf_counter()
        found = list(verdicts(path))
        seconds = time.perf_counter() - started
        if options.each:
            for number, verdict in enumerate(found):
                print(f"{number:4} {verdict.outcome:30} {verdict.detail[:160]}")
        print(f"{path.name}: {len(found)} replies, {seconds / max(1, len(found)) * 1000:.2f} ms each")
        for model in sorted({verdict.model for verdict in found}):
            counts = Counter(verdict.outcome for verdict in found if verdict.model == model)
            columns = ["accepted", *sorted(set(counts) - {"accepted", "changed"}), "changed"]
            print(f"  {model}: {counts.total()} = " + " · ".join(f"{column} {counts[column]}" for column in columns))


if __name__ == "__main__":
    main()
