"""Importing does nothing, and looking around stays light: what `import` may not do, seen from outside in fresh processes.

Which room may import which is not here: import-linter holds that (`make check`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlagentbench

pytestmark = pytest.mark.usefixtures("providers")
PACKAGE = Path(mlagentbench.__file__).parent

HEAVY = {
    *("altair", "dgl", "inspect_ai", "jax", "keras", "langchain", "matplotlib", "numpy", "ogb", "openai", "anthropic", "pandas", "polars"),
    *("PIL", "scipy", "sklearn", "tensorflow", "torch", "torch_geometric", "torchvision", "transformers", "vl_convert"),
}
"""What a listing must not wait for."""

PROGRAMS = {"standalone"}
"""Folders of programs that run inside a sandbox, on their own."""

WATCH = """
import importlib, json, logging, os, signal, sys, threading
# These set variables and write files while they are imported.
for name in ("numpy", "polars", "scipy.stats", "torch", "transformers.models.llama.modeling_llama"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {
    "os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate", "os.utime",
    "os.chdir", "os.putenv", "os.unsetenv", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp",
    "_thread.start_new_thread", "webbrowser.open", "sqlite3.connect",
}
done, module = [], None

def watch(event, args):
    if module is not None and (event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITING)):
        done.append(f"{module}: {event} {args[:2]}")

def state():
    return {
        "signal handlers": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "logging": [str(handler) for handler in logging.root.handlers] + [logging.root.level],
        "hooks": [str(sys.excepthook), str(sys.displayhook), str(threading.excepthook)],
        "working directory": os.getcwd(),
        "environment": dict(os.environ),
        "search path": list(sys.path),
        "threads": threading.active_count(),
        "umask": os.umask(0o022),
    }

sys.addaudithook(watch)
for name in sys.argv[1:]:
    before = state()
    module = name
    __import__(name)
    module = None
    done += [f"{name}: {key} changed" for key, value in state().items() if value != before[key]]
sys.stderr.write(json.dumps(done))
"""


def modules() -> Iterator[str]:
    """Every module of the package, those of the tasks among them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        folders = [folder for folder in path.parents if PACKAGE in (folder, *folder.parents)]
        importable = all((folder / "__init__.py").is_file() for folder in folders)
        if importable and path.name != "__main__.py" and path.parent.name not in PROGRAMS:
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def watched_import(*names: str, path: Path) -> tuple[str, list[str]]:
    """Import modules in a process of their own: what it printed, and what importing did beyond defining things."""
    command = [sys.executable, "-B", "-W", "error::DeprecationWarning:mlagentbench", "-c", WATCH, *names]
    result = subprocess.run(command, capture_output=True, text=True, cwd=path, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout, json.loads(result.stderr)


def modules_loaded_by(code: str) -> set[str]:
    """The top-level names of all modules that a piece of Python loads."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules}, sep='\\n', file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


def test_importing_any_module_only_defines_things(tmp_path: Path) -> None:
    """The module `busy`, imported last, shows that what a module does would be noticed."""
    (tmp_path / "busy.py").write_text("import os, tempfile\nprint('hello')\nos.environ['X'] = '1'\ntempfile.mkdtemp()\n")
    names = list(modules())
    assert "mlagentbench.records" in names and "mlagentbench.cli.main" in names

    printed, done = watched_import(*names, "busy", path=tmp_path)

    assert printed == "hello\n"
    assert [line for line in done if not line.startswith("busy: ")] == []
    assert any("os.mkdir" in line for line in done)
    assert "busy: environment changed" in done


def test_the_package_alone_loads_nothing_but_the_standard_library() -> None:
    at_start = modules_loaded_by("")

    loaded = modules_loaded_by("import mlagentbench") - at_start - {"mlagentbench"}

    assert loaded <= sys.stdlib_module_names


@pytest.mark.parametrize("arguments", [["--version"], ["tasks", "list"], ["tasks", "list", "--json"], ["tasks", "show", "vectorization"]])
def test_looking_around_loads_neither_ml_libraries_nor_the_engine(arguments: list[str]) -> None:
    loaded = modules_loaded_by(
        f"import sys; sys.argv = ['mlab', *{arguments!r}]\n"
        "from mlagentbench.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code"
    )

    assert "mlagentbench" in loaded
    assert loaded & HEAVY == set()
