"""The file of an experiment: what it may say, what is taken over by groups, and what a mistake in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.errors import UsageError
from mlagentbench.experiments.file import ExperimentFile, read_experiment

LOG = """
tasks = ["cifar10"]
runs = 8
variant = "mini"
limits = { steps = 50, time = 600 }
[[agents]]
agent = "research"
label = "with log"
[[agents]]
agent = "research"
label = "without log"
options = { research_log = false }
[[models]]
model = "openai/gpt-4o"
fast_model = "openai/gpt-4o-mini"
options = { temperature = 0.5 }
[budget]
cost = 200.0
"""
TRANSFER = """
agents = ["research"]
models = ["scripted/replies.jsonl", "openai/gpt-4o"]
limits = { steps = 50, tokens = 1000 }
[[groups]]
name = "related"
tasks = ["cifar100"]
experience_from = "source"
limits = { steps = 20 }
[[groups]]
name = "source"
tasks = ["cifar10"]
runs = 3
[[groups]]
name = "none"
tasks = ["cifar100"]
"""


def read(folder: Path, text: str, **overrides: object) -> ExperimentFile:
    path = folder / "an-experiment.toml"
    path.write_text(text)
    return read_experiment(path, overrides)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as refused:
        read(folder, text)
    assert str(refused.value).startswith(f"{folder / 'an-experiment.toml'}: ")
    return str(refused.value).removeprefix(f"{folder / 'an-experiment.toml'}: ")


def test_a_file_without_groups_is_one_group_named_as_the_file(tmp_path: Path) -> None:
    file = read(tmp_path, LOG)
    assert (file.name, file.runs, file.budget.cost) == ("an-experiment", 16, 200.0)
    (group,) = file.groups
    assert [entry.label for entry in group.agents] == ["with log", "without log"]
    assert group.fields == {"variant": "mini", "limits": {"steps": 50, "time": 600}}
    models = group.models[0].by_role()
    assert models["agent"].options == {"temperature": 0.5} and models["fast"].options == {}


def test_groups_take_over_what_they_do_not_set_and_follow_their_experience(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text("")
    file = read(tmp_path, TRANSFER)
    assert [group.name for group in file.groups] == ["source", "related", "none"], "a group comes after the one it learns from"
    source, related, _ = file.groups
    assert source.fields["limits"] == {"steps": 50, "tokens": 1000} and related.fields["limits"] == {"steps": 20, "tokens": 1000}
    assert related.models[0].model == f"scripted/{tmp_path / 'replies.jsonl'}"
    assert file.runs == 2 * (3 + 1 + 1)


def test_an_override_holds_for_every_group(tmp_path: Path) -> None:
    file = read(tmp_path, TRANSFER, variant="mini", runs=1, limits={"steps": 3}, models=["scripted/demo"])
    assert file.runs == 3 and {group.fields["variant"] for group in file.groups} == {"mini"}
    assert [group.fields["limits"] for group in file.groups] == [{"steps": 3, "tokens": 1000}] * 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('tasks = ["a"]\nstep = 3', "step: there is no such key"),
        ('tasks = ["a"]\ngpus = ["0"]', "gpus: there is no such key"),
        ('tasks = ["a"]\nruns = 0', "runs: Input should be greater than or equal to 1"),
        ("runs = 1", "tasks: Field required"),
        ('tasks = ["a", "a"]', "tasks: the task 'a' is there twice"),
        ('tasks = ["a"]\nagents = ["research", "research"]', "agents: the agent's label 'research' is there twice"),
        ('tasks = ["a"]\n[[models]]\nmodel = "a/b"\nfast = "c/d"', "models.0.fast: there is no such key"),
        ('tasks = ["a"]\n[budget]\ndollars = 3', "budget.dollars: there is no such key"),
        ('tasks = ["a"]\nname = "../up"', "name: String should match pattern"),
        ('tasks = ["a"]\n[[groups]]\nruns = 3', "group 1: name: give the group a name"),
        ('tasks = ["a"]\n[[groups]]\nname = "x"\nfoo = 3', "group x: foo: there is no such key"),
        ('tasks = ["a"]\n[[groups]]\nname = "x"\n[[groups]]\nname = "x"', "two groups have the name x"),
        ('tasks = ["a"]\n[[groups]]\nname = "x"\nexperience_from = "y"', "group x: experience_from: there is no group 'y'"),
        (
            'tasks = ["a"]\n[[groups]]\nname = "x"\nexperience_from = "y"\n[[groups]]\nname = "y"\nexperience_from = "x"',
            "group x: experience_from: it leads back to the group itself",
        ),
        (
            'tasks = ["a"]\n[[groups]]\nname = "x"\nexperience_from = "y"\nexperience = "z"\n[[groups]]\nname = "y"',
            "group x: a group has either experience or experience_from",
        ),
    ],
)
def test_a_mistake_is_named_with_its_key_and_its_file(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)
