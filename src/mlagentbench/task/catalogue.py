"""Find tasks: the built-in ones, those of other packages, and folders named on the command line.

A task is a folder with a `task.toml`, one of the original's layout (original.py), a competition of MLE-bench (competition.py), or a task of
MLGym (mlgym.py). A folder may hold several tasks that differ in the parameters of their functions: the `instances` of its `task.toml`.
Built-in ones lie beside this file; a package adds its own by the entry point group `mlagentbench.tasks`, whose objects are packages or
modules with task folders beside them; `--task-path` adds folders from anywhere. Nothing of a task is imported until it is prepared or
graded.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from pydantic import ValidationError

from mlagentbench.errors import TaskError
from mlagentbench.task.formats import competition, mlgym, original
from mlagentbench.task.spec import TaskSpec, instance_ids, invalid, read_instance, read_toml
from mlagentbench.util.source import import_as_it_is

ENTRY_POINT_GROUP = "mlagentbench.tasks"
BUILT_IN = Path(__file__).parents[1] / "tasks"
FRAME = re.compile(r'^ *File "(.+?)", line (\d+)', re.MULTILINE)
"""A place in a traceback, as Python writes it."""


class Layout(NamedTuple):
    """Another benchmark's layout of task folders: the functions that read one, given the task's path."""

    name: str
    """That of the plug-in which stands in for the task's `grade.py` and `prepare.py`: `tasks/_<name>`."""
    matches: Callable[[Path], bool]
    task_id: Callable[[Path], str]
    read: Callable[[Path], TaskSpec]
    problem: Callable[[Path], str]
    starter: Callable[[Path], Path]
    preparer: Callable[[Path], Path | None]
    notices: Callable[[Path], Sequence[str]]
    sample: Callable[[Path, Path], Path | None] = lambda path, public: None
    several: bool = False
    """Whether a folder may hold several tasks, so that a path ends in the name of one."""


LAYOUTS = (
    Layout(
        name="original",
        matches=original.is_original,
        task_id=original.task_id,
        read=original.read_original,
        problem=original.problem,
        starter=lambda path: path / "env",
        preparer=original.preparer,
        notices=original.notices,
    ),
    Layout(
        name="competition",
        matches=competition.is_competition,
        task_id=competition.task_id,
        read=competition.read_competition,
        problem=competition.problem,
        starter=lambda path: competition.STARTER,
        preparer=lambda path: path / "prepare.py",
        notices=competition.notices,
        sample=competition.sample,
    ),
    Layout(
        name="mlgym",
        matches=mlgym.is_mlgym,
        task_id=mlgym.task_id,
        read=mlgym.read_mlgym,
        problem=mlgym.problem,
        starter=mlgym.starter,
        preparer=mlgym.preparer,
        notices=mlgym.notices,
        several=True,
    ),
)


class Task(NamedTuple):
    """A task: its spec, and the folder that holds the rest."""

    spec: TaskSpec
    folder: Path
    parameters: Mapping[str, int] = MappingProxyType({})
    """For one of several tasks of a folder, the arguments by name for those functions of its modules that take them."""
    name: str = ""
    """For one of several tasks of a folder, its name there."""
    layout: Layout | None = None
    """None for a task of this package's own layout."""

    @property
    def path(self) -> Path:
        """The path by which `load_task` finds it: its folder, or for one of several tasks of a folder, its name in that folder."""
        return self.folder / self.name

    @property
    def id(self) -> str:
        """The name by which it is run."""
        return self.spec.id

    @property
    def notices(self) -> Sequence[str]:
        """Warnings of what the task cannot guarantee, a line each."""
        return self.layout.notices(self.path) if self.layout else ()

    @property
    def preparer(self) -> Path | None:
        """The file that prepares its data; None for a task without data, and for one whose data has been prepared in place."""
        if self.layout:
            return self.layout.preparer(self.path)
        path = self.folder / "prepare.py"
        return path if path.is_file() else None

    @property
    def starter(self) -> Path:
        """The folder of the files with which the agent begins."""
        return self.layout.starter(self.path) if self.layout else self.folder / "starter"

    @property
    def problem(self) -> str:
        """The description that the agent is given."""
        return self.layout.problem(self.path) if self.layout else (self.folder / "problem.md").read_text(encoding="utf-8")

    def sample(self, public: Path) -> Path | None:
        """Return the file of the public data that is a valid submission; None where the task names none."""
        return self.layout.sample(self.path, public) if self.layout else None

    def place_in(self, traceback: str) -> str:
        """Return the last place of a traceback in this task's own files, as `my_task/grade.py, line 25`; empty for none."""
        places = [(Path(file), line) for file, line in FRAME.findall(traceback) if Path(file).is_relative_to(self.folder)]
        return f"{places[-1][0].relative_to(self.folder.parent)}, line {places[-1][1]}" if places else ""

    def module(self, name: str) -> ModuleType | None:
        """Import `<name>.py` of the task's folder, or what stands in for it and calls the task's own scripts; None where there is none."""
        if self.layout:
            function = {"grade": "grade", "prepare": "full" if self.preparer else ""}.get(name)
            return _stand_in(self.layout.name, name, function, self.path) if function else None
        path = self.folder / f"{name}.py"
        if not path.is_file():
            return None
        if self.folder.parent == BUILT_IN:
            return _bound(importlib.import_module(f"mlagentbench.tasks.{self.folder.name}.{name}"), self.parameters)
        # A folder named on the command line becomes a package whose name cannot be another task's, imported anew each time.
        package = f"mlagentbench_task_{self.id.replace('-', '_')}"
        for known in [each for each in sys.modules if each == package or each.startswith(f"{package}.")]:
            del sys.modules[known]
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(self.folder)]
        import_as_it_is(self.folder)
        return _bound(importlib.import_module(f"{package}.{name}"), self.parameters)


def _stand_in(layout: str, name: str, function: str, path: Path) -> ModuleType:
    """Return a module with one function of a layout's plug-in, bound to a task's path."""
    module = ModuleType(f"mlagentbench_{layout}_{name}")
    plug_in = importlib.import_module(f"mlagentbench.tasks._{layout}.{name}")
    setattr(module, function, functools.partial(getattr(plug_in, function), path))
    return module


def _layout(path: Path) -> Layout | None:
    """Return the layout of another benchmark's task; None for any other path."""
    return next((layout for layout in LAYOUTS if layout.matches(path)), None)


def load_task(folder: Path) -> Task:
    """Read one task's folder, or for one of several tasks of a folder, its id in that folder.

    Raises:
        TaskError: the folder lacks a part, or its `task.toml` breaks the rules.
    """
    folder = folder.resolve()
    if layout := _layout(folder):
        try:
            spec = layout.read(folder)
        except ValidationError as error:  # such as a folder's name of which no id can be made
            raise invalid(folder, error) from None
        return Task(spec, folder.parent, name=folder.name, layout=layout) if layout.several else Task(spec, folder, layout=layout)
    instance = None
    if not folder.exists() and (folder.parent / "task.toml").is_file():
        folder, instance = folder.parent, folder.name
    spec, parameters = read_instance(folder / "task.toml", instance)
    task = Task(spec, folder, parameters, instance or "")
    for part in ("problem.md", "starter", "grade.py"):
        if not (folder / part).exists():
            raise TaskError(f"{folder} is no complete task: it has no {part}")
    return task


def find_tasks(task_paths: Iterable[Path] = ()) -> Mapping[str, Task]:
    """Find all tasks, by id, sorted. A folder of `task_paths` may be one task, or hold several.

    Raises:
        TaskError: a folder holds no task, a task or a package of tasks cannot be read, or two tasks have one id.
    """
    tasks, problems = find_readable_tasks(task_paths)
    if problems:
        raise TaskError(problems[0])
    return tasks


def find_readable_tasks(task_paths: Iterable[Path] = ()) -> tuple[Mapping[str, Task], Sequence[str]]:
    """Find the tasks that can be read, by id, sorted, and say of each other task or package of tasks why it cannot, a sentence each.

    Raises:
        TaskError: a folder holds no task, or two tasks have one id.
    """
    folders, problems = _folders_by_id(task_paths)
    tasks = {}
    for task_id, folder in sorted(folders.items()):
        try:
            tasks[task_id] = load_task(folder)
        except TaskError as error:
            problems.append(str(error))
    return tasks, list(dict.fromkeys(problems))


def find_task(task_id: str, task_paths: Iterable[Path] = ()) -> Task:
    """Find one task by its id. Another task's broken folder does not matter.

    Raises:
        TaskError: there is none, it cannot be read, a folder of `task_paths` holds no task, or two tasks have one id. Where there is none,
            the message lists the tasks that exist, and those that cannot be read, since one of them may be meant.
    """
    folders, problems = _folders_by_id(task_paths)
    if task_id not in folders:
        unread = "".join(f". {problem}" for problem in problems)
        raise TaskError(f"there is no task {task_id!r}; there are: {', '.join(sorted(folders))} (--task-path adds folders){unread}")
    return load_task(folders[task_id])


def _folders_by_id(task_paths: Iterable[Path]) -> tuple[Mapping[str, Path], list[str]]:
    """Return the tasks' folders by id, and the problems that keep tasks from being read, a sentence each."""
    folders, problems = list(_task_folders(BUILT_IN)), list[str]()
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            folders += _task_folders(Path(inspect.getfile(entry_point.load())).parent)
        except Exception as error:
            # Another package may raise anything when it is imported.
            package = entry_point.dist.name if entry_point.dist is not None else entry_point.value
            problems.append(f"the tasks of the package {package} cannot be found: {type(error).__name__}: {error}")
    for path in task_paths:
        found = (
            [path]
            if (path / "task.toml").exists() or _layout(path)
            else [*_task_folders(path), *filter(_layout, sorted(path.glob("[!_.]*")))]
        )
        found = found or mlgym.task_paths(path)
        if not found:
            layouts = "a task.toml, the original's env and scripts, a config.yaml of MLE-bench, or the configs/tasks of MLGym"
            raise TaskError(f"{path} holds no task: neither it nor a folder in it has {layouts}")
        folders += found
    by_id: dict[str, Path] = {}
    for folder in map(Path.resolve, folders):
        try:
            paths = _paths(folder)
        except TaskError as error:
            problems.append(str(error))
            # This may be the task that is asked for: loading it then raises the problem.
            by_id.setdefault(folder.name.replace("_", "-"), folder)
            continue
        for task_id, path in paths.items():
            if by_id.setdefault(task_id, path) != path:
                raise TaskError(f"two tasks are called {task_id!r}: {by_id[task_id]} and {path}; rename one")
    return by_id, problems


def _paths(folder: Path) -> Mapping[str, Path]:
    """Return the paths of a folder's tasks, by id: as its file has it, right or wrong; where it has none, the folder's name.

    Raises:
        TaskError: the file cannot be read.
    """
    if layout := _layout(folder):
        return {layout.task_id(folder): folder}
    table = read_toml(folder / "task.toml")
    if ids := instance_ids(table):
        return {task_id: folder / task_id for task_id in ids}
    found = table.get("id")
    return {found if isinstance(found, str) else folder.name: folder}


def _bound(module: ModuleType, parameters: Mapping[str, int]) -> ModuleType:
    """Return a module whose functions have those of the parameters that they take."""
    if not parameters:
        return module
    bound = ModuleType(module.__name__)
    for name, value in vars(module).items():
        takes = inspect.signature(value).parameters if inspect.isfunction(value) else ()
        given = {key: argument for key, argument in parameters.items() if key in takes}
        setattr(bound, name, functools.partial(value, **given) if given else value)
    return bound


def _task_folders(parent: Path) -> Iterable[Path]:
    """Return the folders in `parent` that are tasks, without those that begin with an underscore, such as the template of new tasks."""
    return sorted(path.parent for path in parent.glob("[!_.]*/task.toml"))
