"""The public names, docs/api.md, and running agents from Python."""

from __future__ import annotations

import ast
import asyncio
import gc
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mlagentbench
from tests.runner.lives import make_task, write_file
from tests.support import reply

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TEMPLATE = ROOT / "src" / "mlagentbench" / "tasks" / "_template"
API = (ROOT / "docs" / "api.md").read_text()
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:The 'initial' parameter:DeprecationWarning")
"""Inspect leaves streams to the garbage collector, and uses an old parameter of tenacity."""
REPLIES = (write_file("submission.txt", "12.5"), reply("Final Answer", '{"final_answer": "It is done."}'))


@pytest.fixture(autouse=True)
def _nothing_is_left_to_collect() -> Iterator[None]:
    """Collect those streams here, and not in whatever test comes next."""
    yield
    gc.collect()


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def imported_modules(code: str) -> set[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set()  # a part of a file, which is indented
    nodes = list(ast.walk(tree))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return names | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}


def test_the_page_lists_every_public_name_and_no_other() -> None:
    rows = [row.split("|")[1] for row in API.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    kinds = set(re.findall(r"`([A-Z]\w+)`", API.split("## Errors")[1]))

    assert sorted(listed | kinds) == mlagentbench.__all__


def test_every_public_name_is_what_a_type_checker_sees() -> None:
    tree = ast.parse(Path(mlagentbench.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert sorted(declared) == mlagentbench.__all__
    for name, module in declared.items():
        assert getattr(mlagentbench, name) is getattr(sys.modules[str(module)], name)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = mlagentbench.colour  # type: ignore[attr-defined]


def test_importing_records_and_errors_loads_neither_ml_libraries_nor_inspect() -> None:
    code = (
        "import sys, mlagentbench\n"
        "assert not [name for name in sys.modules if name.startswith('mlagentbench.')]\n"
        "from mlagentbench import Action, ActionError, InvalidSubmission, ResponseFormatError, RunSpec, Score, Step\n"
        "print(*{'inspect_ai', 'numpy', 'polars'} & set(sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("page", [*PAGES, TEMPLATE], ids=lambda page: page.name)
def test_examples_and_the_template_of_a_task_import_only_the_public_names(page: Path) -> None:
    blocks = [file.read_text() for file in page.rglob("*.py")] if page.is_dir() else python_blocks(page)
    imported = {name for block in blocks for name in imported_modules(block)}

    assert {name for name in imported if name.startswith("mlagentbench")} <= {"mlagentbench"}


def test_the_action_on_the_page_is_one() -> None:
    (block,) = [block for block in python_blocks(ROOT / "docs" / "api.md") if "@action" in block]
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "docs/api.md", "exec"), names)

    assert names["count_lines"].usage == json.dumps({"file_name": "[a file, such as train.py]"})


@pytest.fixture
def fields(tmp_path: Path) -> dict[str, Any]:
    """The keywords of a short run with scripted replies."""
    model = mlagentbench.ScriptedModel(REPLIES)
    small = {"task_folder": make_task(tmp_path / "guess"), "log_directory": tmp_path / "runs", "models": {"agent": model}}
    return {**small, "variant": "mini", "sandbox": "none", "baseline": "paper", "score_steps": False}


def test_run_returns_the_results(fields: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logs = mlagentbench.run(**fields, times=2, limits={"steps": 7})

    assert [run.score for run in logs.runs] == [12.5, 12.5]
    for run in logs.runs:
        assert run.result is not None and run.result.outcome.ended == "final_answer" and run.result.success
        assert run.info.spec.limits.steps == 7 and run.info.spec.limits.time == 5 * 3600, "the task's own"
    assert len(mlagentbench.load(tmp_path / "runs").runs) == 2
    assert "No sandbox" in caplog.text

    # A spec repeats what it says, and keywords override it.
    (again,) = mlagentbench.run(logs.runs[0].info.spec, log_directory=tmp_path / "others", limits={"steps": 1}).runs
    assert again.info.spec.models == logs.runs[0].info.spec.models
    assert again.result is not None and again.result.outcome.ended == "limit_steps" and again.score == 12.5


def test_run_async_runs_inside_an_event_loop(fields: dict[str, Any]) -> None:
    async def both() -> None:
        with pytest.raises(mlagentbench.UsageError, match="await mlagentbench"):
            mlagentbench.run(**fields)
        found = await asyncio.gather(*(mlagentbench.run_async(**fields) for _ in range(2)), return_exceptions=True)
        (done,) = [each for each in found if isinstance(each, mlagentbench.Logs)]
        (refused,) = [each for each in found if isinstance(each, mlagentbench.UsageError)]
        assert [run.score for run in done.runs] == [12.5]
        assert "another evaluation is in progress" in str(refused)

    asyncio.run(both())


def test_a_failure_of_a_provider_is_a_result(fields: dict[str, Any]) -> None:
    fields["models"] = {"agent": mlagentbench.ScriptedModel([mlagentbench.ScriptedReply(reply="x", expect=("nowhere",))])}

    (run,) = mlagentbench.run(**fields).runs

    assert run.result is not None and run.result.outcome.ended == "infrastructure"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_folder": None}, "no task is named"),
        ({"task_folder": None, "task": "nothing"}, "there is no task 'nothing'"),
        ({"agent": "nobody"}, "there is no agent 'nobody'"),
        ({"colour": "red"}, "colour: there is no such field"),
        ({"limits": {"steps": "many"}}, "limits.steps"),
        ({"models": {}}, "needs a model"),
        ({"models": {"agent": "nobody/nothing"}}, "'nobody/nothing' cannot be used"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    fields: dict[str, Any], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(mlagentbench.UsageError, match=message):
        mlagentbench.run(**{**fields, **changes})

    assert not list(tmp_path.glob("runs/*/run.json"))


def test_one_call_does_runs_of_different_models(fields: dict[str, Any], tmp_path: Path) -> None:
    specs = []
    for number in ("1", "2"):
        script = tmp_path / f"{number}.jsonl"
        texts = (write_file("submission.txt", number), reply("Final Answer", '{"final_answer": "Done."}'))
        script.write_text("".join(json.dumps({"reply": text}) + "\n" for text in texts))
        specs.append(
            mlagentbench.RunSpec.model_validate(
                {
                    **{key: value for key, value in fields.items() if key != "log_directory"},
                    "task": "guess",
                    "models": {"agent": f"scripted/{script}"},
                }
            )
        )

    logs = mlagentbench.run(*specs, log_directory=tmp_path / "runs", times=2)

    assert (
        sorted((run.info.spec.model("agent").name[-7:], run.score) for run in logs.runs) == [("1.jsonl", 1.0)] * 2 + [("2.jsonl", 2.0)] * 2
    )
