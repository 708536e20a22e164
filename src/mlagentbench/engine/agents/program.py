"""Run an agent that an `agent.toml` describes, such as Claude Code: a program of its own, unmodified, behind Inspect's agent bridge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mlagentbench.agents.programs.definition import OptionValue, Program, filled, find_program, host_path
from mlagentbench.agents.programs.install import Installation, require_installed
from mlagentbench.engine.agents.bridged import BASE_URLS, Bridge, BridgedAgent
from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError
from mlagentbench.run_spec import AgentPackage
from mlagentbench.sandbox.base import Mount
from mlagentbench.sandbox.standalone import empty_file
from mlagentbench.sandbox.view.interpreter import SYSTEM, describe

SITES = "lib/python*/site-packages"
"""Where a virtual environment has its packages."""


class ProgramAgent(BridgedAgent):
    """An agent that an `agent.toml` describes: a program of its own, in a sandbox of its own.

    Args:
        folder: the folder of the `agent.toml`, or the name of one of this package's agents.
        options: the options that its `agent.toml` lists, and `version`, of its package.
    """

    def __init__(self, folder: str, **options: OptionValue) -> None:
        self._program = find_program(folder)
        definition = self._program.definition
        self._installation: Installation | None = None
        if definition.package is not None:
            self._installation = require_installed(self._program, str(options.pop("version", definition.package.version)))
        self._options = _checked(self._program, options)
        self._resumes = definition.resume is not None
        super().__init__(
            command=self._words, mounts=self._mounts(), path=self._path(), environment=definition.environment, home=definition.home
        )

    @property
    def package(self) -> AgentPackage | None:
        """The package that is installed, for the record of the run; None for an agent without one."""
        return self._installation.record.package if self._installation else None

    async def __call__(self, environment: Environment) -> None:
        """Run the agent until it ends, and submit its answer.

        Raises:
            AgentError: the run has steps already, and the agent cannot continue from them; or the interpreter of its package is not the
                run's.
        """
        if environment.steps and not self._resumes:
            raise AgentError(
                f"{self._program.name} keeps nothing that it could continue from, so its runs cannot be resumed; start another"
            )
        python = environment.sandbox_spec.python
        self._check_interpreter(python)
        self._values = {
            **self._options,
            "task": environment.description.strip(),
            "steps": environment.limits.steps,
            "script_seconds": round(environment.sandbox_spec.limits.seconds),
            **{name.lower().replace("gemini_", ""): url for name, url in BASE_URLS.items()},
        }
        variables = {name: filled(text, self._values) for name, text in self._setup.environment.items()}
        mounts = (*self._setup.mounts, *self._masks(environment.sandbox_spec.hidden))
        self._setup = self._setup._replace(environment=variables, mounts=mounts)
        await super().__call__(environment)

    def _words(self, bridge: Bridge) -> list[str]:
        definition = self._program.definition
        further = (definition.resume or ()) if bridge.steps else definition.start
        return [filled(word, self._values) for word in (*definition.command, *further)]

    def _mounts(self) -> list[Mount]:
        program = self._program
        named = [Mount(host_path(program, place), inside) for place, inside in program.definition.mounts.items()]
        if self._installation is not None:
            return [Mount(self._installation.folder, program.inside), *named]
        return named or [Mount(program.folder, program.inside)]

    def _path(self) -> list[str]:
        """Return the folders of its programs in the sandbox."""
        package = self._program.definition.package
        if self._installation is None or package is None:
            return [f"{self._program.inside}/bin"]
        folder = self._installation.folder
        found = [path for pattern in package.path for path in sorted(folder.glob(pattern))]
        return [f"{self._program.inside}/{path.relative_to(folder)}" for path in found]

    def _check_interpreter(self, python: Path) -> None:
        """Raise AgentError if the interpreter that a package of PyPI was installed for is not visible in the sandbox."""
        if self._installation is None or (own := self._installation.record.python) is None:
            return
        if not any(own.is_relative_to(root) for root in (*describe(python).roots, *SYSTEM)):
            raise AgentError(
                f"{self._program.name} was installed for {own}, which scripts of {python} do not see; install it for that interpreter:"
                f" mlab agents install {self._program.name} --python {python}"
            )

    def _masks(self, hidden: Iterable[str]) -> list[Mount]:
        """Return mounts that empty the files of its packages which the task hides."""
        if self._installation is None:
            return []
        folder = self._installation.folder
        files = {file for site in folder.glob(SITES) for glob in hidden for file in site.glob(glob) if file.is_file()}
        return [Mount(empty_file(), f"{self._program.inside}/{file.relative_to(folder)}") for file in sorted(files)]


def _checked(program: Program, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return the values of all options.

    Raises:
        ValueError: an option is unknown, or has a value of another type than its default.
    """
    known = program.definition.options
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"there is no option {name!r}; there are: {', '.join(known) or 'none'}")
        default = known[name].default
        if not isinstance(default, str) and type(value) is not type(default):
            raise ValueError(f"{name}={value!r} is not like its default, {default!r}")
    return {**{name: option.default for name, option in known.items()}, **options}
