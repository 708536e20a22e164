"""What a run is given beside its task, in its prompt and to search."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mlagentbench import UsageError
from mlagentbench.results.conditions import agent_words
from mlagentbench.run_spec import GivenFolder
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.given import check_folder, example_text
from mlagentbench.task.catalogue import find_task, load_task
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import content_of, make_task, models, scripted, write_file
from tests.support import finish, reply

SEARCH = reply("Search Documents", '{"query": "weight of q"}')
MISS = reply("Search Documents", '{"query": "zebra"}')
END = reply("Final Answer", '{"final_answer": "done"}')


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Three texts, of which one is about q, and a picture."""
    folder = tmp_path / "documents"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "a.md").write_text("Stations\n\nThe station has a door.\n")
    (folder / "b.md").write_text(f"{'Filler. ' * 100}\n\nThe weight of q is 7.\n\n{'More filler. ' * 9}\n")
    (folder / "c.md").write_text("Of the weight nothing is known.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\0weight of q")
    return folder


@pytest.fixture
def plan(tmp_path: Path, documents: Path) -> Plan:
    """A run that can search these documents."""
    return make_plan(load_task(make_task(tmp_path / "guess")), tmp_path / "logs", documents=str(documents))


def carry_out(plan: Plan, *replies: str) -> RunDirectory:
    had = plan.continues.replies() if plan.continues else {}
    return RunDirectory(plan.log_directory / finish(plan.conduct(models(scripted(replies), had))).run)


def test_documents_are_searched_and_what_was_found_is_recorded(plan: Plan, documents: Path) -> None:
    run = carry_out(plan, SEARCH, MISS, write_file("submission.txt", "12"), END)
    found, missed, *_ = run.steps()
    assert found.observation.startswith("b.md, from line 3:\nThe weight of q is 7.")
    retrieved = found.details["retrieved"]
    assert isinstance(retrieved, list)
    assert [(each["document"], each["line"]) for each in retrieved] == [("b.md", 3), ("c.md", 1)]  # type: ignore[index, call-overload]
    assert retrieved[0]["score"] > retrieved[1]["score"] > 0  # type: ignore[index, call-overload, operator]
    assert missed.status == "error" and "Use other words" in missed.observation
    prompt = run.calls(1)[0].prompt
    assert "- Search Documents:" in prompt and "There are documents" in prompt
    assert run.info.documents is not None and run.info.documents.files == 4
    assert f"with documents {run.info.documents.digest[:8]}" in agent_words(run.info)
    assert run.result is not None and "documents" in run.result.outcome.flags
    assert not (run.workspace / "documents").exists()


def test_without_documents_nothing_can_be_searched(plan: Plan) -> None:
    run = carry_out(plan.but(documents=None), SEARCH, END)
    assert 'There is no action "Search Documents"' in str(run.calls(1)[0].rejected)
    assert "Search Documents" not in run.calls(1)[0].prompt
    assert run.result is not None and not {"documents", "examples"} & set(run.result.outcome.flags)


def test_a_run_that_goes_on_searches_what_it_began_with(plan: Plan, documents: Path) -> None:
    replies = (SEARCH, write_file("submission.txt", "12"), SEARCH, END)
    whole = content_of(carry_out(plan, *replies))
    run = carry_out(plan, *replies[:2])
    shutil.rmtree(documents)
    with resumed(run.path, 1) as fork:
        assert content_of(carry_out(fork, *replies)) == whole
    with resumed(run.path) as again:
        assert content_of(carry_out(again, *replies)) == whole


def test_a_task_gives_its_own_documents(tmp_path: Path) -> None:
    plan = make_plan(find_task("fresh-tabular", []), tmp_path / "logs", documents="task:documents", baseline="none")
    run = carry_out(plan, reply("Search Documents", '{"query": "rule at the station, division by"}'), END)
    assert run.steps()[0].observation.startswith("note_")
    assert run.info.documents is None and "with documents task:documents" in agent_words(run.info)
    with pytest.raises(UsageError, match=r"has no folder for --documents task:papers; its folders are: .*task:documents"):
        carry_out(plan.but(documents="task:papers"), END)


def test_examples_stand_in_the_prompt_of_every_agent(plan: Plan, tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.md"
    snippet.write_text("Scale the inputs first.")
    earlier = carry_out(plan.but(documents=None), write_file("notes.txt", "x" * 3000), END)
    run = carry_out(plan.but(documents=None, examples=(snippet, earlier.path)), END)
    prompt = run.calls(1)[0].prompt
    assert "Here are 2 examples" in prompt and "Scale the inputs first." in prompt
    assert "Action: Write File" in prompt and "Action: Final Answer" in prompt
    assert [each.path for each in run.info.examples] == [str(snippet), str(earlier.path)]
    assert run.result is not None and "examples" in run.result.outcome.flags
    before = agent_words(run.info)
    snippet.write_text("Scale the outputs first.")
    assert agent_words(carry_out(plan.but(documents=None, examples=(snippet, earlier.path)), END).info) != before


def test_what_cannot_be_an_example_is_one_clear_line(plan: Plan, tmp_path: Path) -> None:
    empty, picture = tmp_path / "empty.md", tmp_path / "picture.png"
    empty.write_text("\n")
    picture.write_bytes(b"\xff\xfe\x00")
    long = tmp_path / "long.md"
    long.write_text("x" * 100_001)
    for path, words in (
        (tmp_path / "nowhere", "No such file"),
        (empty, "it is empty"),
        (picture, "neither a text file nor the directory of a run"),
        (tmp_path, "the answers"),
        (long, "has 100,001 characters"),
        (plan.task.folder / "grade.py", "the answers"),
    ):
        with pytest.raises(UsageError, match=words):
            example_text(path, plan.task)


def test_experience_says_which_tasks_it_is_of(plan: Plan) -> None:
    earlier = carry_out(plan.but(documents=None), END)
    alone = check_folder(earlier.path, "experience", plan.task, plan.log_directory)
    assert (alone.tasks, alone.domains) == ((plan.spec.task,), ())
    facts = json.loads((earlier.path / "run.json").read_text())
    (earlier.path / "run.json").write_text(json.dumps({**facts, "domain": "guessing"}))
    together = plan.log_directory.rename(plan.log_directory.parent / "earlier")
    found = check_folder(together, "experience", plan.task, plan.log_directory)
    assert (found.tasks, found.domains) == ((plan.spec.task,), ("guessing",))
    (together / earlier.name / "run.json").write_text("{")
    assert check_folder(together, "experience", plan.task, plan.log_directory).tasks == ()
    assert GivenFolder(folder="", files=1, bytes=1, digest="0").tasks == ()
