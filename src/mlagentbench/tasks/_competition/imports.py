"""Import the functions that a competition's `config.yaml` names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = "mlebench"


def function(folder: Path, name: str) -> Callable[..., Any]:
    """Return a function of MLE-bench, from the checkout that the competition's folder lies in, or else from the installed package.

    Args:
        folder: the competition's folder.
        name: the function, as `package.module:function`.

    Raises:
        ImportError: there is no such function, or no MLE-bench, or a package that it needs is missing.
    """
    package = folder.resolve().parents[1]
    if package.name == PACKAGE and str(package.parent) not in sys.path:
        sys.path.insert(0, str(package.parent))
    if importlib.util.find_spec(PACKAGE) is None:
        raise ImportError(f"{folder} imports {PACKAGE}: keep it in {PACKAGE}/competitions of a checkout, or install MLE-bench")
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not callable(found):
        raise ImportError(f"{module} has no function {attribute!r}, which the competition's config.yaml names")
    return found  # type: ignore[no-any-return]
