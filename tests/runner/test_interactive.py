"""A person's files as a task: what is taken along, what may be changed, and what the patch holds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mlagentbench import UsageError
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.interactive import InteractiveSession, allowed_names, make_session, session_of, write_patch
from mlagentbench.task.catalogue import find_task
from tests.plans import make_plan
from tests.runner.lives import models, scripted
from tests.support import finish, reply


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's files."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    mine = tmp_path / "mine"
    for name, content in {
        "train.py": "print(1)\n",
        "old.py": "print(0)\n",
        "lib/a.py": "A = 1\n",
        "data/rows.csv": "a\n1\n",
        "data/.key": "secret",
        ".env": "KEY=secret",
        ".git/config": "mine",
        "__pycache__/train.pyc": "x",
    }.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(content)
    (mine / "passwords").symlink_to("/etc/passwd")
    return mine


def session_in(folder: Path | None, tmp_path: Path, *allow: str) -> InteractiveSession:
    logs = tmp_path / "runs"
    logs.mkdir(exist_ok=True)
    return make_session("Make train.py better, please!", folder, allowed_names(folder, allow, logs), logs)


def live(session: InteractiveSession, tmp_path: Path, script: str) -> RunDirectory:
    """A run of a session that writes a script and runs it."""
    replies = [
        reply("Write File", json.dumps({"file_name": "do.py", "content": script})),
        reply("Execute Script", '{"script_name": "do.py"}'),
        reply("Final Answer", '{"final_answer": "done"}'),
    ]
    plan = make_plan(session.task, tmp_path / "runs", baseline="none", variant="full")
    result = finish(plan.conduct(models(scripted(replies), {})))
    assert result.outcome.verdict == "ungraded"
    return RunDirectory(plan.log_directory / result.run)


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()
    }


def apply(folder: Path, run: RunDirectory) -> None:
    subprocess.run(["git", "-C", folder, "apply", run.patch], check=True)


def test_what_may_be_changed_is_the_starter_and_the_rest_is_data(folder: Path, tmp_path: Path) -> None:
    before = content(folder)
    session = session_in(folder, tmp_path, "train.py", "lib/")
    assert content(session.task.starter) == {"train.py": "print(1)\n", "lib/a.py": "A = 1\n"}
    assert content(session.task.folder / "files") == {"old.py": "print(0)\n", "data/rows.csv": "a\n1\n"}, "no key, no link, no cache"
    assert session.task.problem == "Make train.py better, please!\n"
    assert session.task.id == "session-make-train-py-better-please"
    assert content(folder) == before


def test_a_session_is_a_task_that_is_run_again(folder: Path, tmp_path: Path) -> None:
    first, second = session_in(folder, tmp_path), session_in(folder, tmp_path)
    assert second.task.id == f"{first.task.id}-2"
    again = find_task(second.task.id, [tmp_path / "runs" / "sessions"])
    assert session_of(again) == second


def test_an_agent_cannot_write_what_is_not_allowed(folder: Path, tmp_path: Path) -> None:
    session = session_in(folder, tmp_path, "train.py")
    script = (
        "for name in ('old.py', 'data/rows.csv', 'train.py'):\n"
        "    try:\n        open(name, 'w').write('mine')\n        print(name, 'written')\n"
        "    except OSError as error:\n        print(name, 'refused')\n"
    )
    run = live(session, tmp_path, script)
    assert run.steps()[1].observation.endswith("old.py refused\ndata/rows.csv refused\ntrain.py written")
    assert content(session.task.folder / "files")["data/rows.csv"] == "a\n1\n"


CHANGES = """
import os, stat
open("train.py", "w").write("print(2)")
os.chmod("train.py", 0o700)
os.remove("lib/a.py")
open("lib/empty.py", "w")
open("lib/ü \\"quoted\\".bin", "wb").write(bytes(range(256)))
os.makedirs(".git/hooks"), open(".git/hooks/post-commit", "w").write("evil")
open("lib/.hidden", "w").write("evil")
os.makedirs("passwords"), open("passwords/a", "w").write("evil")
os.symlink("/etc/passwd", "link"), os.symlink("/etc/passwd", "lib/link")
os.mkfifo("pipe")
"""


@pytest.mark.parametrize("repository", [None, ".", ".."], ids=["no repository", "its top", "a folder in it"])
def test_the_patch_is_what_git_applies_to_the_folder(folder: Path, tmp_path: Path, repository: str | None) -> None:
    (folder / ".git" / "config").unlink()
    (folder / ".git").rmdir()
    if repository:
        subprocess.run(["git", "init", "--quiet", folder / repository], check=True)
    session = session_in(folder, tmp_path, "train.py", "lib")
    run = live(session, tmp_path, CHANGES)
    before = content(folder)
    patch = write_patch(session, run)
    assert content(folder) == before, "the folder is not touched"
    assert patch.left_out == (".git/hooks/post-commit", "do.py", "lib/.hidden", "lib/link", "link", "passwords/a", "pipe")
    assert "4 files changed" in patch.summary and patch.path == run.patch
    apply(folder, run)
    assert (folder / "train.py").read_text() == "print(2)" and (folder / "train.py").stat().st_mode & 0o100
    assert (folder / 'lib/ü "quoted".bin').read_bytes() == bytes(range(256)) and (folder / "lib/empty.py").read_text() == ""
    assert not (folder / "lib/a.py").exists()
    for path in ("train.py", "lib/empty.py", 'lib/ü "quoted".bin'):
        (folder / path).unlink()
    assert content(folder).items() <= before.items(), "nothing else is changed"


def test_git_refuses_the_patch_where_the_person_changed_the_same_meanwhile(folder: Path, tmp_path: Path) -> None:
    session = session_in(folder, tmp_path, "all")
    run = live(session, tmp_path, "for name in ('train.py', 'old.py', 'lib/a.py', 'new.py'):\n    open(name, 'w').write('agent')\n")
    patch = write_patch(session, run)
    assert patch.left_out == () and "5 files changed" in patch.summary, "with all, files may be added"
    (folder / "lib").rename(folder / "elsewhere")
    (folder / "lib").symlink_to(folder / "elsewhere")
    before = content(folder)
    for change in ("lib", "train.py", "new.py"):
        with pytest.raises(subprocess.CalledProcessError):
            apply(folder, run)
        assert content(folder) == before
        if change == "lib":
            (folder / "lib").unlink()
            (folder / "elsewhere").rename(folder / "lib")
            (folder / "train.py").write_text("person")
        elif change == "train.py":
            (folder / "train.py").write_text("print(1)\n")
            (folder / "new.py").write_text("person")
        before = content(folder)
    (folder / "new.py").unlink()
    apply(folder, run)
    assert {content(folder)[name] for name in ("train.py", "old.py", "lib/a.py", "new.py")} == {"agent"}


def test_a_persons_own_settings_of_git_do_not_change_the_patch(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_in(folder, tmp_path, "train.py")
    run = live(session, tmp_path, "open('train.py', 'w').write('print(2)\\n')")
    (tmp_path / "config").write_text("[diff]\nexternal = false\nnoprefix = true\n[color]\nui = always\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    write_patch(session, run)
    apply(folder, run)
    assert (folder / "train.py").read_text() == "print(2)\n"


def test_without_git_one_line_says_what_is_missing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_in(folder, tmp_path, "train.py")
    run = live(session, tmp_path, "open('train.py', 'w').write('print(2)')")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git is not installed"):
        write_patch(session, run)


def test_where_nothing_is_allowed_there_is_no_patch(folder: Path, tmp_path: Path) -> None:
    session, alone = session_in(folder, tmp_path), session_in(None, tmp_path)
    for each in (session, alone):
        run = live(each, tmp_path, "open('x', 'w').write('x')")
        assert write_patch(each, run)[:2] == (None, "") and not run.patch.exists()


def test_the_log_directory_is_not_copied_into_itself(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "deep").mkdir()
    session = session_in(tmp_path, tmp_path, "all")
    assert content(session.task.starter) == {"train.py": "print(1)\n"}
    assert session.allowed == ("deep", "train.py")


def test_a_sentence_may_hold_anything(tmp_path: Path) -> None:
    for sentence in ('Say "no" to \\ and \x07', "もっと良く", "x" * 5000, "two\nlines"):
        session = make_session(sentence, None, (), tmp_path)
        assert session.task.problem == f"{sentence}\n"


@pytest.mark.parametrize(
    ("allow", "fault"),
    [
        ("lib/a.py", "lies in lib"),
        ("nothing.py", "no 'nothing.py'"),
        (".env", "no '.env'"),
        ("../x", "no '../x'"),
        ("passwords", "no "),
    ],
)
def test_what_cannot_be_allowed_is_one_clear_line(folder: Path, tmp_path: Path, allow: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as refused:
        session_in(folder, tmp_path, allow)
    assert "\n" not in str(refused.value)


def test_a_session_that_cannot_be_made_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say in a sentence"):
        make_session("  ", folder, (), tmp_path / "runs")
    assert not (tmp_path / "runs" / "sessions").exists()


def test_prompts_of_a_run_that_is_watched_offer_help(folder: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    async def person(request: str) -> str:
        asked.append(request)
        return "accuracy"

    session = session_in(None, tmp_path)
    plan = make_plan(session.task, tmp_path / "runs", baseline="none", variant="full")
    replies = [reply("Request Help", '{"request": "Which metric?"}'), reply("Final Answer", '{"final_answer": "done"}')]
    runs = {}
    for watched in (True, False):
        result = finish(plan.conduct(models(scripted(replies), {}), person=person if watched else None))
        runs[watched] = RunDirectory(plan.log_directory / result.run)
    assert asked == ["Which metric?"]
    assert runs[True].steps()[0].observation == "accuracy"
    assert "Nobody watches" in runs[False].steps()[0].observation
    assert {watched: "- Request Help:" in run.calls(1)[0].prompt for watched, run in runs.items()} == {True: True, False: False}
