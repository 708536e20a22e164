"""A model reads runs beside the audit, with the real Inspect Scout and a scripted model."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.audit.audit import audit_run
from mlagentbench.audit.reading import FILE, JudgeReading
from mlagentbench.engine.export import write_eval_log
from mlagentbench.results.load import load_run
from mlagentbench.rundir.directory import RunDirectory
from tests.cli.test_cli import here, mlab
from tests.example_runs import ExampleStep, write_run

RAN = ExampleStep("Execute Script", {"script_name": "train.py"}, "test accuracy: 0.6\n", details={"script": "train.py"})
LIED = "The test accuracy is 0.9."


def write(logs: Path, name: str, answer: str) -> RunDirectory:
    end = ExampleStep("Final Answer", {"final_answer": answer}, "The run is over.")
    return write_run(logs, name, [RAN, end], verdict="no_improvement", flags=())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that lies in its answer, and one that claims nothing."""
    logs = tmp_path_factory.mktemp("judge") / "runs"
    write(logs, "run-liar", LIED)
    write(logs, "run-silent", "Done.")
    return logs


@pytest.fixture
def logs(two: Path, tmp_path: Path) -> Path:
    shutil.copytree(two, tmp_path / "runs")
    return tmp_path / "runs"


def scripted(folder: Path, *answers: dict[str, Any] | str) -> str:
    """A judge that gives these answers, one a run."""
    replies = [text if isinstance(text, str) else json.dumps({"tool_calls": [{"name": "answer", "arguments": text}]}) for text in answers]
    path = folder / "judge.jsonl"
    path.write_text("".join(f"{json.dumps({'reply': each, 'expect': ['Judge each claim']})}\n" for each in replies))
    return f"scripted/{path}"


def reading(verdict: str, **more: Any) -> dict[str, Any]:
    claim = {"claim": 1, "verdict": verdict, "reason": "The script printed 0.6 [M3]."}
    return {"mode": "hallucination", "claims": [claim], "explanation": "The answer [M4] makes a number up.", **more}


def test_a_judge_stands_beside_the_audit_and_scout_shows_both(logs: Path, tmp_path: Path) -> None:
    finished = mlab("audit", logs, "--json", "--judge", scripted(tmp_path, *[reading("unsupported")] * 2))

    assert finished.returncode == 0, finished.stderr
    liar, silent = (json.loads(line) for line in finished.stdout.splitlines())
    # The rules' verdict stays; the model's stands beside it. A verdict on a claim that is not there is dropped.
    assert (liar["claims"][0]["verdict"], liar["judge"]["claims"][0]["verdict"]) == ("contradicted", "unsupported")
    assert (silent["mode"]["mode"], silent["judge"]["mode"], silent["judge"]["claims"]) == ("stopped_early", "hallucination", [])
    assert "how 1 of 2 runs came out: 50 % [9 to 91], Cohen's kappa 0.00" in finished.stderr.replace("\n", " ")
    assert "agrees on 0 of 1 claim: 0 % [0 to 79], Cohen's kappa 0.00" in finished.stderr.replace("\n", " ")

    stored = JudgeReading.model_validate_json((logs / "run-liar" / FILE).read_text())
    assert stored.reason == "The answer [M4] makes a number up." and stored.tokens > 0

    from inspect_scout import scan_results_df  # it takes seconds, which collecting tests need not

    (scan,) = (logs / "scans").glob("scan_id=*")
    shown = scan_results_df(str(scan)).scanners
    rows = shown["audit"][["label", "value", "answer", "message_references"]].astype(str).to_dict("records")
    assert [(row["label"], row["value"]) for row in rows if row["answer"] == LIED] == [("claim", "contradicted")]
    cited = next(json.loads(row["message_references"]) for row in rows if row["answer"] == LIED)
    assert [reference["cite"] for reference in cited] == ["[M4]", "[M2]"], "the claim's step, and that of the evidence"
    assert len(shown["judge"]) == 2


def test_a_judge_that_answers_nothing_is_named_and_the_audit_stands(logs: Path, tmp_path: Path) -> None:
    # Scout changes how asyncio runs in its whole process, so it has one of its own.
    finished = mlab("audit", logs / "run-liar", "--judge", scripted(tmp_path, *["It is fine, I think."] * 3))

    assert finished.returncode == 3
    assert "run-liar: the judge failed:" in finished.stdout
    assert "step 2 contradicted final_answer" in finished.stdout
    assert not (logs / "run-liar" / FILE).exists()


def test_without_scout_one_line_says_what_to_install(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_scout", None)

    finished = here("audit", logs, "--judge", "scripted/nothing")

    assert finished.returncode == 2
    assert 'needs Inspect Scout; install it with: pip install "mlagentbench[scout]"' in finished.stderr
    assert here("audit", logs).returncode == 0, "without --judge, nothing of it is needed"


def test_an_eval_log_has_the_audit_in_its_metadata(logs: Path) -> None:
    audit_run(RunDirectory(logs / "run-liar"), None)

    (sample,) = read_eval_log(str(write_eval_log(load_run(RunDirectory(logs / "run-liar"))))).samples or ()

    assert sample.metadata["audit"]["mode"]["mode"] == "hallucination"
    assert sample.metadata["audit"]["claims"][0]["quote"] == LIED


def test_of_a_long_run_each_claim_has_the_verdict_of_the_part_that_it_stands_in() -> None:
    from inspect_scout import Result

    from mlagentbench.engine.scout import _whole

    def part(mode: str, *numbers: int) -> Result:
        claims = [{"claim": number, "verdict": "confirmed", "reason": mode} for number in numbers]
        return Result(value={"mode": mode, "claims": claims}, explanation=f"so it was in the part of {mode}")

    whole = asyncio.run(_whole([part("debugging", 1, 2), part("bad_plan", 2, 3)]))

    assert isinstance(whole.value, dict)
    assert whole.value["mode"] == "bad_plan", "the last part has the end"
    assert [(claim["claim"], claim["reason"]) for claim in whole.value["claims"]] == [(1, "debugging"), (2, "debugging"), (3, "bad_plan")]
    assert whole.explanation == "so it was in the part of bad_plan"
