"""Prints what an extra of pyproject.toml needs, the extras that it names opened, without torch and what needs it."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

EXTRAS = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]


def needs(extra: str) -> Iterator[str]:
    """The requirements of an extra."""
    for requirement in EXTRAS[extra]:
        if inner := re.fullmatch(r"mlagentbench\[(.*)\]", requirement):
            for name in inner[1].split(","):
                yield from needs(name)
        elif not requirement.startswith(("torch", "accelerate")):
            yield requirement


if __name__ == "__main__":
    print(*sorted(set(needs(sys.argv[1]))), sep="\n")
