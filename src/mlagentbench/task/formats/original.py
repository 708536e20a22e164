"""Read task folders of the original's layout as tasks of this package.

    <task>/
      env/                       the starter files, data included
      scripts/
        research_problem.txt     the description; or it is in `../tasks.json`
        eval.py                  get_score(submission_folder) -> float
        prepare.py, prepared     fetches data into env/ and answers into scripts/; `prepared` says that it has been done
        read_only_files.txt      globs, one a line
        direction.txt            added by this package: maximize or minimize, for a task that is not one of the paper's

Such a folder guarantees less than one with a `task.toml`; `notices` says what is missing. Nothing of it is imported or run here.
"""

from __future__ import annotations

import ast
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from mlagentbench.errors import TaskError
from mlagentbench.records import Direction
from mlagentbench.task.spec import UNGRADED, Metric, Starter, SubmissionSpec, TaskSpec, read_spec, read_toml

BUILT_IN = Path(__file__).parents[2] / "tasks"
NAMES: Mapping[str, str] = {
    "amp-parkinsons-disease-progression-prediction": "parkinsons-disease",
    "cifar10-training": "cifar10",
    "google-research-identify-contrails-reduce-global-warming": "identify-contrails",
    "fathomnet-out-of-sample-detection": "fathomnet",
    "feedback-prize-english-language-learning": "feedback",
}
"""This package's ids of the original's tasks that have another name there, by that name in lower case."""
PUBLISHED = datetime.date(2023, 10, 5)
"""The day of arXiv 2310.03302, after which a model may have read such a task: a folder itself does not say when it was published."""
NOT_GRADED = Metric(name=UNGRADED, direction="maximize")
RUNS_CODE = frozenset({"importlib", "runpy", "subprocess", "exec", "eval", "__import__", "system", "spec_from_file_location"})
UNPICKLES = frozenset({"pickle", "joblib", "dill", "cloudpickle", "torch.load", "from_pretrained", "load_model", "restore_model"})
FETCHES = frozenset({"load_dataset", "torchvision", "ogb", "requests", "urllib", "kaggle", "clrs"})


def our_name(name: str) -> str:
    """Turn a name of the original's into an id of this package: `CLRS` becomes `clrs`. Empty where no character of it is allowed."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return NAMES.get(plain, plain)


def is_original(folder: Path) -> bool:
    """Return whether a folder is a task of the original's layout."""
    scripts = folder / "scripts"
    has_scripts = any((scripts / name).is_file() for name in ("research_problem.txt", "eval.py", "prepare.py"))
    return (folder / "env").is_dir() and has_scripts and not (folder / "task.toml").exists()


def task_id(folder: Path) -> str:
    """Return the id by which such a folder is run: its name in lower case, after `original-` where a built-in task has this name."""
    name = our_name(folder.name)
    return f"original-{name}" if not name or _known(name) else name


def problem(folder: Path) -> str:
    """Return the description that the agent is given.

    Raises:
        TaskError: there is none.
    """
    path = folder / "scripts" / "research_problem.txt"
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    try:
        tasks = json.loads((folder.parent / "tasks.json").read_text(encoding="utf-8"))
        named = [task for name, task in tasks.items() if task.get("benchmark_folder_name", name) == folder.name]
        described = next(task["research_problem"] for task in named if task.get("research_problem"))
    except (OSError, ValueError, AttributeError, StopIteration):
        raise TaskError(f"{folder} says nowhere what the task is: write it into {path}") from None
    return str(described)


def preparer(folder: Path) -> Path | None:
    """Return the script that has yet to prepare the task; None where there is none, or it has been run."""
    script = folder / "scripts" / "prepare.py"
    return script if script.is_file() and not (folder / "scripts" / "prepared").exists() else None


def read_original(folder: Path) -> TaskSpec:
    """Read the spec of such a folder.

    Raises:
        TaskError: it does not say what the task is or whether a higher score is better, or its `eval.py` is no Python.
    """
    sentence, known = " ".join(problem(folder).split()), _known(our_name(folder.name))
    source = _EvalSource(folder)
    scripts = sorted(path.name for path in (folder / "env").glob("*.py"))
    return TaskSpec(
        id=task_id(folder),
        title=sentence if len(sentence) <= 80 else f"{sentence[:79]}…",
        category=known.category if known else "other",
        modality=known.modality if known else "of the original's layout",
        published=known.published if known else PUBLISHED,
        metric=Metric(name="score of eval.py", direction=_direction(folder, known)) if source.text else NOT_GRADED,
        submission=SubmissionSpec(mode="file", files=("**/*",), required=source.required),
        starter=Starter(script="train.py" if "train.py" in scripts or not scripts else scripts[0]),
        network=False,
        paper=known.paper if known else None,
        answers_public=source.fetches,
    )


def _direction(folder: Path, known: TaskSpec | None) -> Direction:
    path = folder / "scripts" / "direction.txt"
    try:
        said = path.read_text(encoding="utf-8").strip().lower()
    except FileNotFoundError:
        if known:
            return known.metric.direction
        raise TaskError(f"{folder} does not say whether a higher score is better: write maximize or minimize into {path}") from None
    for direction in get_args(Direction):
        if said == direction:
            return direction  # type: ignore[no-any-return]
    raise TaskError(f"{path} says {said[:40]!r}; write maximize or minimize")


def _known(name: str) -> TaskSpec | None:
    path = BUILT_IN / name.replace("-", "_") / "task.toml"
    return read_spec(path) if name and path.is_file() and "id" in read_toml(path) else None


def notices(folder: Path) -> Sequence[str]:
    """Return warnings of what such a task cannot guarantee, a line each. They are read from its files, none of which is run."""
    source = _EvalSource(folder)
    found = []
    if not source.text:
        found.append("it has no scripts/eval.py: its runs are not graded")
    else:
        found.append("its eval.py runs in the grader's process, with your rights and beside the answers")
    if source.runs_code:
        found.append("its eval.py imports or runs what the agent left: code of the agent's can read the answers, and change the score")
    if source.unpickles:
        found.append("its eval.py loads what the agent left by ways that can run code (pickle, checkpoints): the same holds")
    if source.reads_env:
        found.append("its eval.py reads files of env/, which agents see: its answers may lie there")
    if source.fetches:
        found.append("its eval.py takes the answers from a public data set, which scripts can know or load")
    if preparer(folder):
        found.append("its prepare.py runs with your rights and with the network")
    if _lines(folder / "scripts" / "read_only_files.txt"):
        found.append("its read_only_files.txt is not enforced: every run has a copy of its own of all that env/ holds")
    return found


class _EvalSource:
    """What `eval.py` does, as far as its source shows."""

    def __init__(self, folder: Path) -> None:
        path = folder / "scripts" / "eval.py"
        self.text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise TaskError(f"{path} is no Python: {error}") from None
        nodes = list(ast.walk(tree))
        names = {part for node in nodes for part in _names(node)}
        self.runs_code = bool(names & RUNS_CODE)
        self.unpickles = bool(names & UNPICKLES)
        self.fetches = bool(names & FETCHES)
        self._tree = tree
        defaults = {
            id(value) for node in nodes if isinstance(node, ast.FunctionDef) for value in (*node.args.defaults, *node.args.kw_defaults)
        }
        added = {id(value) for node in nodes if _adds_to_path(node) for value in ast.walk(node)}
        texts = [
            node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in defaults | added
        ]
        self.reads_env = any(re.search(r"(^|[/\\])env([/\\]|$)", str(node.value)) for node in texts)

    @property
    def required(self) -> tuple[str, ...]:
        """The submission's files that it names: those that it joins to the folder it is given."""
        function = next((node for node in self._tree.body if isinstance(node, ast.FunctionDef) and node.name == "get_score"), None)
        if function is None or not function.args.args:
            return ()
        given = function.args.args[0].arg
        joined = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _names(node.func) & {"join"}]
        found = [
            "/".join(str(part.value).strip("/") for part in call.args[1:])  # type: ignore[attr-defined]
            for call in joined
            if isinstance(call.args[0] if call.args else None, ast.Name)
            and call.args[0].id == given  # type: ignore[attr-defined]
            and all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in call.args[1:])
        ]
        return tuple(dict.fromkeys(name for name in found if re.search(r"\.\w+$", name) and ".." not in name))


def _names(node: ast.AST) -> set[str]:
    """Return the names that a node uses: of modules and functions, and of attributes, with and without what they belong to."""
    match node:
        case ast.Import():
            return {part for alias in node.names for part in alias.name.split(".")}
        case ast.ImportFrom():
            return {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        case ast.Name():
            return {node.id}
        case ast.Attribute():
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            return {f"{of}.{node.attr}"} if node.attr in ("eval", "exec") else {node.attr, f"{of}.{node.attr}"}
    return set()


def _adds_to_path(node: ast.AST) -> bool:
    """Return whether a node is `sys.path.append(...)` or `insert`, whose path is not read as data."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in ("append", "insert"):
        return False
    return "sys.path" in _names(node.func.value)


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
