"""MLAgentBench: a benchmark of language agents doing machine-learning experimentation.

import mlagentbench

logs = mlagentbench.load("runs")
logs.frame()        # a polars frame, one row a run
logs.columns()      # success rates and improvements with intervals, by agent, model and task
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mlagentbench.results.logs import Logs

__all__ = ["load"]


def load(*logs: str | Path) -> Logs:
    """Load every run at some paths, each a log directory or one run's directory.

    Raises:
        RunNotFound: there is no such directory.
    """
    # Importing the package stays fast: records and statistics are imported on the first call.
    from mlagentbench.results.logs import load

    return load(*logs)
