"""Read tasks of MLGym (arXiv 2502.14499) as tasks of this package.

    configs/tasks/<name>.yaml      in a checkout of MLGym: the description, the files to begin with, the baseline and the evaluation
    configs/datasets/<name>.yaml   where a task's data is: in the checkout, or somewhere else
    data/<folder>/                 the files of one or several tasks, evaluate.py among them
      direction.txt                added by this package: maximize or minimize, and the metric, for one that is not in `DIRECTIONS`

The path of a task is `data/<folder>/<name>`, which need not exist. All that `evaluate.py` reads lies in the workspace, the answers too;
`notices` says so. Nothing of a checkout is imported here, and what is run runs in the sandbox.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import yaml

from mlagentbench.errors import TaskError
from mlagentbench.records import Direction
from mlagentbench.task.formats.original import BUILT_IN
from mlagentbench.task.spec import Limits, Metric, Starter, SubmissionSpec, TaskSpec

PUBLISHED = datetime.date(2025, 2, 20)
"""The day of arXiv 2502.14499."""
DATA = "data"
"""The folder of the workspace that holds the data."""
HOME = "/home/agent/workspace"
"""The workspace in MLGym's container, which its scripts name. Here they are given their working directory in its place."""
DIRECTIONS: Mapping[str, Direction] = {
    **dict.fromkeys(("accuracy", "f1", "auc", "r2", "bleu"), "maximize"),
    **dict.fromkeys(("rmse", "mse", "mae", "loss", "perplexity"), "minimize"),
}
"""Which scores are better by common metrics, in lower case. The configuration does not say."""
CSV = "CSVSubmissionTasks"
RUNS_CODE = ("PythonSubmissionTasks", "ModelSubmissionTasks")
"""Kinds of tasks whose `evaluate.py` imports or loads what the agent left."""


class MLGymConfig(NamedTuple):
    """What a task's configuration says, as far as it is used here."""

    root: Path
    """The checkout."""
    folder: Path
    """The task's folder in `data`."""
    title: str
    description: str
    kind: str
    files: tuple[Path, ...]
    """The files and folders to begin with."""
    data: tuple[Path, ...]
    """The folders whose contents are the data."""
    baseline: str | None
    """The script whose score is the baseline."""
    baseline_score: float | None
    evaluation: str
    metric: Metric
    script_time: float


def task_paths(path: Path) -> list[Path]:
    """Return the paths of the tasks of a checkout, of its `configs/tasks`, or of one of the files there; empty for any other path."""
    if path.suffix == ".yaml":
        files: Iterable[Path] = [path]
    else:
        files = (path if path.name == "tasks" else path / "configs" / "tasks").glob("*.yaml")
    return sorted(found for file in files if (found := _path_of(file.resolve())))


def is_mlgym(path: Path) -> bool:
    """Return whether a path is that of a task of MLGym."""
    return path.parent.parent.name == DATA and _config_file(path).is_file() and not (path / "task.toml").exists()


def task_id(path: Path) -> str:
    """Return the id by which a task is run: its configuration's name in words, after `mlgym-` where a built-in task has this name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", path.name)
    name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"mlgym-{name}" if (BUILT_IN / name.replace("-", "_")).is_dir() else name


def read_mlgym(path: Path) -> TaskSpec:
    """Read the spec of a task.

    Raises:
        TaskError: its configuration cannot be read, or asks for what is not supported here.
    """
    config = read_config(path)
    files = ("submission.csv",) if config.kind == CSV else ("**/*",)
    return TaskSpec(
        id=task_id(path),
        title=config.title,
        category="other",
        modality="of MLGym's layout",
        published=PUBLISHED,
        metric=config.metric,
        submission=SubmissionSpec(mode="file", files=files, required=files if config.kind == CSV else ()),
        starter=Starter(script=config.baseline) if config.baseline else Starter(state="none"),
        read_only=(DATA,) if config.data else (),
        limits=Limits(script_time=config.script_time),
        answers_public=True,
        answers_visible=True,
    )


def read_config(path: Path) -> MLGymConfig:
    """Read a task's configuration.

    Raises:
        TaskError: it cannot be read, lacks a part, or asks for what is not supported here.
    """
    file, folder, root = _config_file(path), path.parent, path.parents[2]
    found = _read(file)
    try:
        kind, scores = str(found.get("task_entrypoint", CSV)), [dict(each) for each in found.get("baseline_scores") or ()]
        files = tuple(root / name for name in found["starter_code"])
        evaluation = str(found["evaluation_paths"][0])
        baseline = next((str(name) for name in found.get("baseline_paths") or ()), None)
        title, description = str(found["name"]), str(found["description"])
        seconds = float(found.get("training_timeout") or 3600)
        datasets = [_read(root / "configs" / name) for name in found.get("dataset_configs") or ()]
        data = tuple(root / str(dataset["data_path"]) for dataset in datasets)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise TaskError(f"{file} is no configuration of a task of MLGym: {type(error).__name__}: {error}") from None
    if kind not in (CSV, *RUNS_CODE):
        raise TaskError(f"{file}: tasks of the kind {kind!r} are not supported, only {', '.join((CSV, *RUNS_CODE))}")
    for dataset, place in zip(datasets, data, strict=True):
        if not dataset.get("is_local") or not place.is_dir():
            raise TaskError(f"{file}: its data is not in the checkout; fetch it to {place}, and set is_local in its dataset's file")
    if missing := [each for each in files if not each.exists()]:
        raise TaskError(f"{file}: there is no {missing[0]}")
    if not any((each.parent / evaluation).exists() for each in files):
        raise TaskError(f"{file}: starter_code does not hold {evaluation}, which evaluation_paths names")
    if baseline is None and not scores:
        raise TaskError(f"{file} has neither baseline_paths nor baseline_scores, so that nothing can be a success")
    metric = _metric(folder, scores)
    score = next((float(each[metric.name]) for each in scores if metric.name in each), None)
    docs = "".join(f"{str(dataset.get('name', '')).upper()}:\n{dataset.get('description', '')}\n\n" for dataset in datasets)
    described = description.replace("{dataset_docs}", docs)
    return MLGymConfig(root, folder, title, described, kind, files, data, baseline, score, evaluation, metric, seconds)


def problem(path: Path) -> str:
    """Return the description that the agent is given: the task's own, with the paths that hold here.

    Raises:
        TaskError: as for `read_config`.
    """
    config = read_config(path)
    score = "" if config.baseline_score is None else f" The baseline's {config.metric.name} is {config.baseline_score:g}."
    direction = "more" if config.metric.direction == "maximize" else "less"
    graded = f"`{config.evaluation}` measures {config.metric.name}, of which {direction} is better; changes to it count for nothing."
    return f"{config.description.replace(HOME, '.').rstrip()}\n\n{graded}{score}\n"


@functools.cache
def starter(path: Path) -> Path:
    """Return a folder with the files that the task begins with. It is a temporary one, and removed when this process ends.

    Raises:
        TaskError: as for `read_config`.
    """
    config = read_config(path)
    folder = Path(tempfile.mkdtemp(prefix="mlab-mlgym-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for source in config.files:
        if source.name == DATA and config.data:
            continue  # it is mounted
        if source.is_dir():
            shutil.copytree(source, folder / source.name, dirs_exist_ok=True)
        else:
            shutil.copy2(source, folder / source.name)
    for script in folder.rglob("*.py"):
        text = script.read_text(encoding="utf-8", errors="surrogateescape")
        if HOME in text:
            script.write_text(text.replace(HOME, "."), encoding="utf-8", errors="surrogateescape")
    return folder


def preparer(path: Path) -> Path | None:
    """Return the file that prepares its data; None for a task without data."""
    return BUILT_IN / "_mlgym" / "prepare.py" if read_config(path).data else None


def notices(path: Path) -> Sequence[str]:
    """Return warnings of what such a task cannot guarantee, a line each."""
    found = ["all that its evaluate.py reads lies in the workspace: if that is the answers, the agent's scripts can read them too"]
    if read_config(path).kind in RUNS_CODE:
        found.append("its evaluate.py imports or loads what the agent left, in a sandbox: that code can print any score")
    return found


def _config_file(path: Path) -> Path:
    return path.parent.parent.parent / "configs" / "tasks" / f"{path.name}.yaml"


def _path_of(file: Path) -> Path | None:
    """Return the path of the task of a configuration, right or wrong; None if the file is none of MLGym's layout."""
    try:
        files = _read(file).get("starter_code")
        _, folder, *_ = Path(files[0]).parts if isinstance(files, list) else ()
    except (TaskError, IndexError, TypeError, ValueError):
        return None
    found = file.parents[2] / DATA / folder / file.stem
    return found if is_mlgym(found) else None


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TaskError(f"{file} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise TaskError(f"{file} is no mapping")
    return found


def _metric(folder: Path, scores: Sequence[Mapping[str, float]]) -> Metric:
    """Return the metric that `direction.txt` names, or else the first of the baseline's scores.

    Raises:
        TaskError: its direction is not known.
    """
    file, names = folder / "direction.txt", [name for each in scores for name in each]
    said = file.read_text(encoding="utf-8").split(maxsplit=1) if file.is_file() else []
    name = said[1].strip() if len(said) == 2 else next(iter(names), "score")
    if not said and (known := DIRECTIONS.get(name.lower())):
        return Metric(name=name, direction=known)
    for direction in get_args(Direction):
        if said and said[0] == direction:
            return Metric(name=name, direction=direction)
    raise TaskError(f"it is not known whether more {name} is better: write `maximize {name}` or `minimize {name}` into {file}")
