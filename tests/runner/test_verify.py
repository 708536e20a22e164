"""`mlab verify`: what was changed after a run is found and named, and an untouched run is whole, whatever else was done with it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard

from mlagentbench.engine.sample_metadata import logged_heads
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.provenance import ChainLink, Provenance, head_after
from mlagentbench.runner.verify import verify
from tests.cli.test_cli import mlab
from tests.support import finish, reply
from tests.tiny_task import tiny_task

STEPS = 3
CHEATED = reply("Write File", json.dumps({"file_name": "x.py", "content": "import time\ntime.perf_counter = lambda: 0"}))


def guess(number: int) -> str:
    return reply("Write File", json.dumps({"file_name": "submission.txt", "content": f"{number}"}))


def made(folder: Path, *replies: str, steps: int = STEPS, task: Path | None = None) -> RunDirectory:
    """Do a run of `steps` steps of a scripted agent, in a log directory of its own."""
    folder.mkdir(exist_ok=True)
    model = folder / "replies.yaml"
    model.write_text(yaml.safe_dump([{"reply": text} for text in replies]))
    task = task or tiny_task(folder / "tiny")
    common = ["--task-path", task, "--model", f"scripted/{model}", "--log-dir", folder / "runs", "--steps", str(steps), "--json"]
    finished = mlab("run", task.name, "--baseline", "paper", *common)
    assert finished.returncode == 0, finished.stderr
    return RunDirectory(Path(json.loads(finished.stdout)["log"]))


def verified(path: Path, *options: str, status: int = 0) -> dict[str, Any]:
    finished = mlab("verify", path, "--json", *options)
    assert finished.returncode == status, finished.stdout + finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def checked(run: RunDirectory) -> set[str]:
    """The files that differ, without grading again."""
    found = finish(verify(run, logged_heads(run.path.parent).get(run.name, ()), grade=False))
    return {difference.file for difference in found.differences}


def named(found: dict[str, Any]) -> set[str]:
    return {difference["file"] for difference in found["differences"]}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of three steps and a call that led to none, not to be changed."""
    return made(tmp_path_factory.mktemp("verify"), guess(11), guess(12), guess(13), guess(14), guess(15))


@pytest.fixture
def run(original: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A copy of the run and of its log directory."""
    shutil.copytree(original.path.parent, tmp_path / "runs")
    return RunDirectory(tmp_path / "runs" / original.name)


def edit(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        fields = json.loads((folder / name).read_text())
        change(fields)
        (folder / name).write_text(json.dumps(fields))

    return tamper


def chain_anew(run: RunDirectory) -> None:
    """Make the chain of a run's files as they are now, as somebody would who hides a change."""
    links, head = list[ChainLink](), ""
    for link in Provenance.model_validate_json((run.path / "provenance.json").read_text()).links:
        digest = link.digest
        if link.name != "task":
            digest = hashlib.sha256((run.path / link.name).read_bytes()).hexdigest()
        head = head_after(head, link.name, digest)
        links.append(ChainLink(name=link.name, digest=digest, head=head))
    (run.path / "provenance.json").write_text(Provenance(links=tuple(links)).model_dump_json())


def test_an_untouched_run_is_whole(run: RunDirectory) -> None:
    found = verified(run.path)

    assert (found["whole"], found["differences"], found["unchecked"], found["notes"]) == (True, [], [], [])
    assert (found["score"], found["score_again"]) == (13.0, 13.0)
    shown = mlab("verify", run.path.parent)
    assert shown.returncode == 0 and f"{run.name}  verified" in shown.stdout


@pytest.mark.parametrize(
    ("file", "tamper"),
    [
        ("steps/0002.json", edit("steps/0002.json", lambda step: step.update(observation="The score is 99."))),
        ("steps/0001.calls.jsonl", lambda folder: (folder / "steps/0001.calls.jsonl").write_text("")),
        ("steps/0002.json", lambda folder: (folder / "steps/0002.json").unlink()),
        ("steps/0001.lost1.calls.jsonl", lambda folder: (folder / "steps/0001.lost1.calls.jsonl").write_text("")),
        ("steps/0002.output.txt", lambda folder: (folder / "steps/0002.output.txt").write_text("The score is 99.")),
        ("steps/of-another-run.calls.jsonl", lambda folder: (folder / "steps/of-another-run.calls.jsonl").write_text("")),
        ("snapshots/0003", lambda folder: shutil.copyfile(folder / "snapshots/0001", folder / "snapshots/0003")),
        ("run.json", edit("run.json", lambda info: info["hardware"].update(cpu="a slower one"))),
        ("result.json", edit("result.json", lambda result: result["score"].update(value=99.0))),
        ("audit.json", edit("audit.json", lambda audit: audit.update(carried=True))),
    ],
)
def test_a_file_that_was_changed_is_named(file: str, tamper: Callable[[Path], None], run: RunDirectory) -> None:
    tamper(run.path)

    assert checked(run) == {file}


@pytest.mark.parametrize(
    "tamper",
    [
        edit("provenance.json", lambda chain: chain["links"][3].update(digest="0" * 64)),
        edit("provenance.json", lambda chain: chain["links"][3].update(head="0" * 64)),
        edit("provenance.json", lambda chain: chain["links"].pop(3)),
        edit("provenance.json", lambda chain: chain["links"].pop()),
        lambda folder: (folder / "provenance.json").write_text("{"),
        lambda folder: (folder / "provenance.json").unlink(),
    ],
)
def test_a_chain_that_was_changed_is_named(tamper: Callable[[Path], None], run: RunDirectory) -> None:
    tamper(run.path)

    assert "provenance.json" in checked(run)


def test_a_content_of_a_snapshot_that_was_replaced_is_named(run: RunDirectory) -> None:
    digest = hashlib.sha256(b"13").hexdigest()
    content = run.objects / digest[:2] / digest[2:]
    content.chmod(0o600)
    content.write_text("99")

    assert checked(run) == {f"objects/{digest[:2]}/{digest[2:]}"}
    content.unlink()
    assert checked(run) == {f"objects/{digest[:2]}/{digest[2:]}"}


def test_a_compressed_content_that_was_replaced_is_named(tmp_path: Path) -> None:
    task = tiny_task(tmp_path / "tiny", train="print('a line')\n" * 100)
    run = made(tmp_path / "logs", guess(11), task=task, steps=1)
    (packed,) = run.objects.glob("*/*.zst")
    packed.chmod(0o600)
    packed.write_bytes(zstandard.compress(b"print('a lie!')\n" * 100))

    assert checked(run) == {f"objects/{packed.parent.name}/{packed.stem}"}


@pytest.mark.parametrize("name", ["steps/0001.json", "run.json", "result.json"])
def test_a_chain_that_was_made_anew_is_found_by_the_log(name: str, run: RunDirectory) -> None:
    edit(name, lambda fields: fields.update({"versions": {}} if "versions" in fields else {"seconds": 1.0}))(run.path)
    chain_anew(run)
    if name != "result.json":
        assert checked(run) == {"provenance.json"}
        return

    found = verified(run.path, "--no-grade", status=1)

    assert named(found) == {"provenance.json"}
    (log,) = run.path.parent.glob("*.eval")
    assert log.name in found["differences"][0]["problem"]
    log.unlink()
    assert "no .eval log" in verified(run.path, "--no-grade")["notes"][0]


def test_a_score_that_its_submission_does_not_have_is_found_without_any_chain(run: RunDirectory) -> None:
    edit("result.json", lambda result: result["score"].update(value=99.0))(run.path)
    (run.path / "provenance.json").unlink()
    for log in run.path.parent.glob("*.eval"):
        log.unlink()

    found = verified(run.path, status=1)

    assert named(found) == {"result.json"}
    assert "99" in found["differences"][0]["problem"] and "13" in found["differences"][0]["problem"]


def test_a_run_that_was_killed_before_it_was_sealed_is_named_and_resuming_seals_it(run: RunDirectory) -> None:
    (run.path / "provenance.json").unlink()
    (run.path / "audit.json").unlink()
    for log in run.path.parent.glob("*.eval"):
        log.unlink()

    found = verified(run.path, status=3)
    assert found["differences"] == []
    assert "it has no provenance.json: its process was killed before it sealed the run" in found["unchecked"][0]
    assert found["unchecked"][0].endswith(f"mlab resume {run.path}")

    finished = mlab("resume", run.path)
    assert finished.returncode == 0 and "it is sealed now" in finished.stdout
    assert verified(run.path)["whole"] and (run.path / "audit.json").exists()
    assert mlab("resume", run.path).returncode == 2, "it is over, and sealed already"


def test_steps_after_the_sealed_ones_are_not_verified_and_earlier_changes_are_found(run: RunDirectory) -> None:
    before = set(run.path.parent.glob("*.eval"))
    assert mlab("resume", run.path, "--steps", "4").returncode == 0
    (log,) = set(run.path.parent.glob("*.eval")) - before
    # As if it had been killed before it sealed the run that it had gone on with: the last link is that of the raised limit.
    chain = Provenance.model_validate_json((run.path / "provenance.json").read_text())
    raised = max(index for index, link in enumerate(chain.links) if link.name == "run.json")
    (run.path / "provenance.json").write_text(Provenance(links=chain.links[: raised + 1]).model_dump_json())
    log.unlink()

    found = verified(run.path, status=3)
    assert found["differences"] == []
    assert "steps/0004.json" in found["unchecked"][0] and "killed before it sealed the run, or somebody added them" in found["unchecked"][0]

    edit("steps/0002.json", lambda step: step.update(observation="The score is 99."))(run.path)
    assert named(verified(run.path, "--no-grade", status=1)) == {"steps/0002.json"}
    assert mlab("resume", run.path).returncode == 0
    assert named(verified(run.path, status=1)) == {"steps/0002.json"}, "what was changed before stays found"


def test_scores_of_steps_are_graded_again_where_asked(run: RunDirectory) -> None:
    assert verified(run.path, "--every-step")["whole"]
    edit("result.json", lambda result: result["step_scores"][1].update(value=99.0))(run.path)
    chain_anew(run)
    for log in run.path.parent.glob("*.eval"):
        log.unlink()

    assert verified(run.path)["whole"]
    found = verified(run.path, "--every-step", status=1)
    assert [each["problem"] for each in found["differences"]] == ["step 2 has the score 99, and graded again 12"]


def test_a_task_that_was_changed_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, guess(11), steps=1)
    grader = tmp_path / "tiny" / "grade.py"
    grader.write_text(grader.read_text().replace("float(text)", "2 * float(text)"))

    found = verified(run.path, status=1)

    assert named(found) == {"task", "result.json"}
    assert mlab("grade", run.path).returncode == 0
    found = verified(run.path)
    assert found["score_again"] == 22.0
    assert "mlab grade" in found["notes"][0] and "result.json" in found["notes"][0]


def test_runs_that_were_graded_and_audited_again_are_whole_and_changes_stay_found(run: RunDirectory) -> None:
    assert mlab("grade", run.path, "--every-step", "--again").returncode == 0
    assert mlab("audit", run.path).returncode == 0
    assert verified(run.path)["whole"]

    edit("steps/0002.json", lambda step: step.update(observation="The score is 99."))(run.path)
    edit("result.json", lambda result: result["outcome"].update(reason="nothing"))(run.path)
    assert mlab("grade", run.path).returncode == 0
    assert mlab("audit", run.path).returncode == 0
    assert named(verified(run.path, status=1)) == {"steps/0002.json", "result.json"}


def test_a_run_that_the_audit_flags_is_whole(tmp_path: Path) -> None:
    run = made(tmp_path, guess(11), CHEATED, steps=2)

    assert run.result is not None and "cheated" in run.result.outcome.flags
    assert verified(run.path)["notes"] == []


def test_runs_that_were_resumed_or_forked_are_whole_and_changes_stay_found(run: RunDirectory) -> None:
    (log,) = run.path.parent.glob("*.eval")
    finished = mlab("resume", run.path, "--steps", "4", "--json")
    assert finished.returncode == 0, finished.stderr
    assert (run.steps_folder / "0004.json").exists()
    assert verified(run.path)["whole"]
    assert len(list(run.path.parent.glob("*.eval"))) == 2 and log.exists()

    finished = mlab("resume", run.path, "--step", "1", "--json")
    assert finished.returncode == 0, finished.stderr
    assert verified(Path(json.loads(finished.stdout)["log"]))["whole"]

    edit("run.json", lambda info: info.update(description="Another task."))(run.path)
    edit("steps/0002.json", lambda step: step.update(observation="The score is 99."))(run.path)
    assert mlab("resume", run.path, "--steps", "5", "--json").returncode == 0
    assert named(verified(run.path, status=1)) == {"run.json", "steps/0002.json"}


def test_a_run_in_progress_is_not_called_changed(run: RunDirectory) -> None:
    with run.lock():
        assert "another process" in verified(run.path, status=3)["unchecked"][0]
    (run.path / "result.json").unlink()

    assert "it is not over" in verified(run.path, status=3)["unchecked"][0]
