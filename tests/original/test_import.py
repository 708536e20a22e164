"""Logs of the original become runs: what they hold is kept exactly, and what they lack is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.cli.main import run as mlab
from mlagentbench.engine.export import log_path
from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.original.write import import_logs
from mlagentbench.records import Usage
from mlagentbench.results.load import load
from mlagentbench.rundir.provenance import head_of
from mlagentbench.runner.resume import resume
from tests.original.logs import BEGAN, TOLD, OriginalLog, example, imported


def test_a_log_becomes_a_run_with_everything_that_it_tells(tmp_path: Path) -> None:
    run = imported(example(tmp_path / "log").end(files={"train.py": "epochs = 9\n", "submission.csv": "id\n"}, seconds=31.5))

    assert (run.info.spec.task, run.info.spec.agent, run.info.spec.model_names["editor"], run.info.spec.variant) == (
        "cifar10",
        "research",
        "gpt-4",
        "full",
    )
    assert run.info.description == "Make train.py better."
    assert run.info.isolation == "none"
    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    assert run.steps[1].entries["Thought"] == " It trains too shortly.\n"
    assert run.steps[1].entries["Research Plan and Status"] == " 1. Look.\n\n\n"
    assert set(run.steps[1].entries) == {"Reflection", "Research Plan and Status", "Fact Check", "Thought"}
    assert run.steps[1].action.arguments["edit_instruction"] == "Train for longer."
    assert run.steps[1].observation == "The edited file is saved to train.py."
    assert [(what.did, what.what) for what in run.steps[1].inside] == [("read", "train.py"), ("write", "train.py")]
    assert run.problems == ()

    # Four calls of the agent (100 + 20 tokens each), one of the fast model and one of the editor (50 + 40 each).
    assert run.usage_by_role["agent"] == Usage(input_tokens=400, output_tokens=80, calls=4)
    assert run.usage_by_role["fast"] == run.usage_by_role["editor"] == Usage(input_tokens=50, output_tokens=40, calls=1)
    assert [step.usage.tokens for step in run.steps] == [330, 210, 120]

    # The steps ended 10, 20 and 30 s after the log's beginning, and the run took 31.5 s until the last of them.
    assert run.seconds == 31.5
    assert [step.seconds for step in run.steps] == [11.5, 10.0, 10.0]
    assert run.info.started == BEGAN + 30 - 31.5
    assert run.framework_seconds == run.model_seconds == 0.0

    assert run.result is not None
    assert run.result.final_answer == "It is better."
    assert (run.result.outcome.ended, run.result.outcome.verdict) == ("final_answer", "ungraded")
    assert set(run.result.outcome.flags) == {"imported", "unsandboxed"}
    assert run.score is None
    assert (
        run.result.outcome.reason == "the real data of cifar10 is not prepared here: mlab prepare cifar10 --variant full, then mlab grade"
    )


def test_every_prompt_and_reply_stands_beside_its_step(tmp_path: Path) -> None:
    run = imported(example(tmp_path / "log").end())

    refused, accepted, understood = run.calls(1)
    assert refused.reply == "I would look at the file first."
    assert refused.rejected == TOLD
    assert accepted.rejected is None
    assert "Action: Understand File" in accepted.reply
    assert accepted.prompt.startswith("\n\nHuman: You are at turn 0.\n\n Your response")
    assert (understood.role, understood.purpose, understood.reply) == ("fast", "Understand File", "A small CNN.")
    assert run.steps[0].malformed == 1
    edited = run.calls(2)[-1]
    assert (edited.role, edited.purpose, edited.reply) == ("editor", "Edit Script (AI)", "```python\nepochs = 9\n```")


def test_the_workspace_of_every_step_is_kept_and_the_end_is_the_final_files(tmp_path: Path) -> None:
    run = imported(example(tmp_path / "log").end(files={"train.py": "epochs = 9\n", "model/weights.bin": "w"}))

    assert set(run.files(2) or {}) == {"train.py", "backup", "backup/train.py_1"}
    assert set(run.files(3) or {}) == {"train.py", "model", "model/weights.bin"}
    changes = run.changes(2)
    assert changes is not None
    assert "+epochs = 9" in next(change.text or "" for change in changes if change.path == "train.py")
    assert (run.directory.workspace / "model" / "weights.bin").read_text() == "w"
    assert run.files(0) is None, "the original keeps no snapshot of the start"


def test_the_research_logs_own_steps_are_kept_and_not_counted(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", research_log=True)
    for number in range(5):
        log.turn("List Files", {"dir_path": "."}, f"file {number}")
    run = imported(log.end())

    assert [step.counted for step in run.steps] == [True, False] * 4 + [False, True, False]
    assert run.info.spec.agent_options == {"research_log": True}
    # A call for each of five turns, five summaries of 30 + 9 tokens, and one retrieval of 7 + 3.
    assert run.usage_by_role["agent"].calls == 5
    assert run.usage_by_role["fast"] == Usage(input_tokens=157, output_tokens=48, calls=6)
    assert [call.purpose for call in run.calls(9)] == ["Retrieval from Research Log"]
    assert [call.purpose for call in run.calls(11)] == ["Append Summary to Research Log"]


@pytest.mark.parametrize(("option", "kept"), [("retrieval", True), ("no_retrieval", False)])
def test_a_run_without_steps_stands_with_the_others_of_its_options(tmp_path: Path, option: str, kept: bool) -> None:
    log = OriginalLog(tmp_path / "log")
    del log.arguments["no_retrieval"]
    for value in (True, False):
        said = ", ".join(f"{name}={given!r}" for name, given in {**log.arguments, option: value}.items())
        (log.root / "log").write_text(f"Namespace({said})\n")
        run = imported(log.end(error="Traceback (most recent call last):\nConnectionError\n"), tmp_path / f"runs-{value}")
        assert run.steps == ()
        assert run.info.spec.agent_options == ({"research_log": True} if value is kept else {})


def test_a_run_of_which_only_the_model_calls_are_left_stands_with_those_that_kept_a_research_log(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", research_log=True)
    log.turn("List Files", {"dir_path": "."}, "train.py")
    log.end()
    for lost in (*log.agent.glob("agent_*.json"), log.env / "trace.json", log.root / "log"):
        lost.unlink()
    run = imported(log.root)
    assert run.steps == ()
    assert run.info.spec.agent_options == {"research_log": True}


def test_a_turn_whose_arguments_could_not_be_read_is_a_reply_without_an_action(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("List Files", {"dir_path": "."}, "train.py")
    log.turn("List Files", '{"dir_path": ', "Expecting value: line 1 column 14", thought="I cut myself short.")
    log.turn("List Files", {"dir_path": "src"}, "src/model.py")
    run = imported(log.end(files={"train.py": ""}))

    assert [step.action.arguments for step in run.steps] == [{"dir_path": "."}, {"dir_path": "src"}]
    unread, read = run.calls(2)
    assert unread.rejected == "ActionInputParsingError: Expecting value: line 1 column 14"
    assert "I cut myself short." in unread.reply
    assert read.rejected is None
    assert run.steps[1].malformed == 1
    assert run.problems == ("env_log/traces: the files after step 0 are missing",), "and no call is"


def test_five_replies_without_an_action_end_a_run_and_are_kept(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("List Files", {"dir_path": "."}, "train.py")
    for number in range(5):
        log.call(log.agent / "step_1_log.log", "You are at turn 1.", f"Hm {number}.")
    run = imported(log.end(message="No valid response after max_retries", seconds=60.0))

    assert run.result is not None
    assert run.result.outcome.ended == "format_failure"
    assert [call.reply for call in run.calls(2)] == [f"Hm {number}." for number in range(5)]
    assert all(call.rejected for call in run.calls(2))
    # How the time before the first step and after the last is shared is not known.
    assert run.seconds == 60.0
    assert run.steps[0].seconds == 0.0


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        ("Traceback (most recent call last):\n  File \"agents/agent.py\", line 3, in run\nKeyError: 'Action'\n", "agent_error"),
        ('Traceback (most recent call last):\n  File "D:\\x\\LLM.py", line 3, in complete\nTypeError: no str\n', "infrastructure"),
        ("Traceback (most recent call last):\nrequests.exceptions.ConnectionError: (MaxRetryError())\n", "infrastructure"),
        ("Traceback (most recent call last):\nMLAgentBench.schema.TooLongPromptError\n", "limit_context"),
        ("Traceback (most recent call last):\nKeyboardInterrupt\n", "cancelled"),
        (
            'Traceback (most recent call last):\n  File "D:\\agents\\agent_research.py", line 97, in run\n    f.write(text)\n'
            '  File "C:\\Python311\\Lib\\encodings\\cp1252.py", line 19, in encode\n'
            "UnicodeEncodeError: 'charmap' codec can't encode character '\\u2713' in position 9: character maps to <undefined>\n",
            "infrastructure",
        ),
    ],
)
def test_an_exception_ends_a_run_as_what_it_was(tmp_path: Path, error: str, ended: str) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("List Files", {"dir_path": "."}, "train.py")
    run = imported(log.end(error=error))

    assert run.result is not None
    assert run.result.outcome.ended == ended
    assert error.splitlines()[-1] in (run.result.outcome.reason or "")


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    log = example(tmp_path / "log").end(files={"train.py": "epochs = 9\n"})
    runs = tmp_path / "runs"
    first = import_logs(log, runs)
    written = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    again = import_logs(log, runs)
    elsewhere = import_logs(shutil.copytree(log, tmp_path / "a copy"), runs)

    assert [each.state for each in (*first, *again, *elsewhere)] == ["new", "there already", "there already"]
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()} == written
    assert len(load(runs)) == len(list(runs.glob("*.eval"))) == 1


def test_a_log_that_grew_takes_the_place_of_what_was_imported_of_it(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("List Files", {"dir_path": "."}, "train.py")
    log.end()
    (before,) = import_logs(log.root, tmp_path / "runs")
    log.turn("Final Answer", {"final_answer": "Done."}, "end")
    (after,) = import_logs(log.end(), tmp_path / "runs")

    assert (before.state, after.state) == ("new", "renewed")
    (run,) = load(tmp_path / "runs")
    assert len(run.steps) == 2
    assert [log.name for log in (tmp_path / "runs").glob("*.eval")] == [log_path(run).name]


def test_an_import_that_was_killed_is_done_again(tmp_path: Path) -> None:
    log = example(tmp_path / "log").end()
    run = imported(log)
    (run.directory.path / "result.json").unlink()
    (run.directory.path / "steps" / "0003.json").unlink()

    (again,) = import_logs(log, tmp_path / "runs")
    assert again.state == "renewed"
    assert again.run is not None
    assert len(again.run.steps) == 3


def test_all_runs_below_a_folder_are_found_and_none_inside_a_run(tmp_path: Path) -> None:
    for model, number in (("claude-v1", 0), ("claude-v1", 1), ("gpt-4", 0)):
        log = example(tmp_path / model / "cifar10" / str(number), model=model)
        log.steps[0]["timestamp"] += number / 10 + len(model) / 1000
        log.workspace("step_final_files", {"env_log/trace.json": "{}"})
        log.end()
    (tmp_path / "notes" / "env_log").mkdir(parents=True)

    found = import_logs(tmp_path, tmp_path / "runs")
    assert [each.logs.relative_to(tmp_path).as_posix() for each in found if each.run] == [
        "claude-v1/cifar10/0", "claude-v1/cifar10/1", "gpt-4/cifar10/0",
    ]  # fmt: skip
    assert [(each.state, each.reason) for each in found if each.run is None] == [("failed", f"{tmp_path / 'notes'} holds no file of a run")]
    one = import_logs(tmp_path / "gpt-4" / "cifar10" / "0" / "env_log", tmp_path / "others")
    assert [each.logs for each in one] == [tmp_path / "gpt-4" / "cifar10" / "0"]
    with pytest.raises(RunNotFound, match="holds no log of the original"):
        import_logs(tmp_path / "runs", tmp_path / "others")


def test_inspects_viewer_is_given_the_same_story(tmp_path: Path) -> None:
    (found,) = import_logs(example(tmp_path / "log").end(files={"train.py": ""}), tmp_path / "runs")
    assert found.run is not None
    log = read_eval_log(str(log_path(found.run)))

    assert (log.status, log.eval.task, log.eval.model, log.eval.solver) == ("success", "cifar10", "gpt-4", "research")
    (sample,) = log.samples or []
    assert [message.role for message in sample.messages] == ["user", *["assistant", "tool"] * 3]
    assert "It trains too shortly." in sample.messages[3].text
    assert [event.event for event in sample.events][:6] == ["sample_init", "span_begin", "model", "info", "model", "model"]
    assert sample.model_usage["gpt-4"].input_tokens == 500
    assert sample.role_usage["editor"].output_tokens == 40
    assert sample.metadata["outcome"]["verdict"] == "ungraded"
    assert sample.metadata["imported"]["folder"] == str(tmp_path / "log")
    assert sample.scores is None, "nothing was graded"


def test_an_imported_run_is_not_gone_on_with(tmp_path: Path) -> None:
    run = imported(example(tmp_path / "log").end())
    with pytest.raises(UsageError, match="was imported"), resume(run.directory.path):
        pass


def test_the_command_says_what_it_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example(tmp_path / "logs" / "gpt-4" / "0").end()
    assert mlab(["import", str(tmp_path / "logs"), "--log-dir", str(tmp_path / "runs"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["task"], told["state"], told["actions"], told["input_tokens"], told["output_tokens"]) == ("cifar10", "new", 3, 500, 160)
    assert told["problems"] == ["env_log/traces/step_final_files: is missing; the last step's files stand for it"]

    assert mlab(["import", str(tmp_path / "logs"), "--log-dir", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert "gpt-4/0" in shown
    assert "1 log: 1 there already" in shown
    assert "step_final_files: is missing" in shown
    assert mlab(["show", str(next((tmp_path / "runs").glob("*/run.json")).parent)]) == 0
    assert mlab(["report", str(tmp_path / "runs")]) == 0
    assert mlab(["import", str(tmp_path / "runs"), "--log-dir", str(tmp_path / "other")]) == 2


def test_an_imported_run_has_a_chain_from_its_import_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(example(tmp_path / "log").end(files={"train.py": "epochs = 9\n", "submission.csv": "id\n"}))
    (sample,) = read_eval_log(str(next(run.directory.path.parent.glob("*.eval")))).samples or ()
    assert sample.metadata["provenance"] == head_of(run.directory)

    assert mlab(("verify", str(run.directory.path))) == 0
    said = capsys.readouterr().out
    assert (
        "verified" in said
        and "not verified" not in said
        and "nothing of what happened to its logs before" in said
        and "it was not graded" in said
    )
    assert mlab(("audit", str(run.directory.path))) == 0
    assert mlab(("verify", str(run.directory.path), "--no-grade")) == 0

    step = run.directory.steps_folder / "0002.json"
    step.write_text(step.read_text().replace("saved", "lost"))
    capsys.readouterr()
    assert mlab(("verify", str(run.directory.path))) == 1
    assert "steps/0002.json: it was changed" in capsys.readouterr().out
