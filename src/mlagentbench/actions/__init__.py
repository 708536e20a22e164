"""The actions an agent can take.

Every action that a module of this folder defines with `@action` is found. Another package adds actions through the entry point group
`mlagentbench.actions`, whose objects are modules with such definitions.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import entry_points

from mlagentbench.actions.base import ActionDefinition

ENTRY_POINT_GROUP = "mlagentbench.actions"


def find_actions() -> Mapping[str, ActionDefinition]:
    """Return all actions by the paper's names: those of this folder, then those of other packages."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    modules += [entry_point.load() for entry_point in entry_points(group=ENTRY_POINT_GROUP)]
    return {value.name: value for module in modules for value in vars(module).values() if isinstance(value, ActionDefinition)}


ACTIONS = find_actions()
