"""Eight real runs of the original, by Gemini Pro and CodeLlama, are imported whole: every step, call and token of their logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.engine.export import log_path
from mlagentbench.original.write import ImportedRun, import_logs

LOGS = Path(__file__).parents[3] / "shared" / "data" / "original_logs"

pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason=f"the original's logs are not in {LOGS}")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ImportedRun]]:
    """All of them, imported once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield import_logs(LOGS, tmp_path_factory.mktemp("runs"))


def _counts(folder: Path) -> tuple[int, int, int]:
    """Calls and tokens of a log, counted by its own lines."""
    lines = [line for path in folder.rglob("*log*") if path.is_file() for line in path.read_text(errors="replace").splitlines()]
    sent, sampled = (
        [int(line.rpartition(": ")[2]) for line in lines if line.startswith(f"Number of {kind} tokens: ")] for kind in ("prompt", "sampled")
    )
    return len(sent), sum(sent), sum(sampled)


def test_nothing_is_lost_of_any(imported: list[ImportedRun]) -> None:
    assert len(imported) == 8
    for each in imported:
        run = each.run
        assert run is not None, each.reason
        trace = json.loads((each.logs / "env_log" / "trace.json").read_text())
        assert run.problems == (f"env_log/traces: the files after steps 0-{len(run.steps) - 2} are missing",), "they were not published"
        assert [(step.action.name, dict(step.action.arguments), step.observation) for step in run.steps] == [
            (step["action"]["name"], step["action"]["args"], step["observation"]) for step in trace["steps"]
        ]
        assert run.info.description == trace["task_description"]
        assert (run.usage.calls, run.usage.input_tokens, run.usage.output_tokens) == _counts(each.logs)
        assert run.seconds == float((each.logs / "env_log" / "overall_time.txt").read_text())
        assert sum(step.seconds for step in run.steps) == pytest.approx(run.seconds)
        assert run.info.spec.model_names["agent"] == each.logs.parts[-3]
        final = (each.logs / "env_log" / "traces" / "step_final_files" / "research_log.log").read_bytes()
        assert (run.directory.workspace / "research_log.log").read_bytes() == final


def test_every_turn_of_the_agents_is_a_step_with_its_thoughts_and_its_reply(imported: list[ImportedRun]) -> None:
    for each in imported:
        assert each.run is not None
        turns = {}
        for path in (each.logs / "agent_log").glob("agent_*.json"):
            last = json.loads(path.read_text())["history_steps"][-1]
            turns[int(re.split(r"[_.]", path.name)[1])] = last
        acted = [turn for _, turn in sorted(turns.items()) if not turn["observation"].startswith("ActionInputParsingError")]
        chosen = [step for step in each.run.steps if step.counted]
        assert [dict(step.entries) for step in chosen] == [
            {name: text for name, text in turn["action"].items() if name not in ("Action", "Action Input")} for turn in acted
        ]
        for step, turn in zip(chosen, acted, strict=True):
            (reply,) = [call.reply for call in each.run.calls(step.number) if call.role == "agent" and call.rejected is None]
            assert turn["action"]["Action Input"] in reply


def test_they_ended_as_their_logs_say(imported: list[ImportedRun]) -> None:
    ended = {"/".join(each.logs.parts[-3:]): each.run.result.outcome for each in imported if each.run and each.run.result}
    assert {name: outcome.ended for name, outcome in ended.items()} == {
        "codellama/imdb/0": "limit_steps",
        "codellama/vectorization/0": "limit_steps",
        "gemini-pro/CLRS/0": "final_answer",
        "gemini-pro/cifar10/0": "final_answer",
        "gemini-pro/house-price/0": "final_answer",
        "gemini-pro/spaceship-titanic/0": "final_answer",
        "gemini-pro/vectorization/0": "limit_steps",
        "gemini-pro/vectorization/1": "limit_steps",
    }
    # Their final files were published without what was submitted.
    assert {outcome.verdict for outcome in ended.values()} == {"ungraded"}
    assert all("hold no submission" in (outcome.reason or "") for outcome in ended.values())


def test_replies_that_held_no_action_are_those_that_their_programs_complained_of(imported: list[ImportedRun]) -> None:
    for each in imported:
        assert each.run is not None
        said = (each.logs / "log").read_text(errors="replace").count("Response is invalid and discarded")
        unread = len(re.findall(r"^ActionInputParsingError", (each.logs / "agent_log" / "main_log").read_text(errors="replace"), re.M))
        assert each.run.malformed == said + unread


def test_inspect_reads_them(imported: list[ImportedRun]) -> None:
    for each in imported:
        assert each.run is not None
        assert each.run is not None
        log = read_eval_log(str(log_path(each.run)))
        (sample,) = log.samples or []
        assert sum(usage.total_tokens for usage in sample.model_usage.values()) == each.run.usage.tokens
        assert sum(event.event == "tool" for event in sample.events) == len(each.run.steps)
        assert sum(event.event == "model" for event in sample.events) == each.run.usage.calls
