"""Which packages a grader shows to a sandbox."""

from __future__ import annotations

import pytest

from mlagentbench import GradingError
from mlagentbench.grading.code.packages import importable


def test_a_package_comes_with_its_shared_libraries_and_what_it_requires() -> None:
    assert "numpy" in importable("numpy")
    assert any(name.startswith("_polars_runtime") for name in importable("polars"))


def test_torch_is_whole() -> None:
    pytest.importorskip("torch")
    names = importable("torch", "numpy")
    assert {"torch", "typing_extensions", "sympy", "mpmath", "numpy"} <= set(names)
    assert not {"mlagentbench", "inspect_ai", "setuptools"} & set(names)


def test_extras_are_left_out() -> None:
    assert "pandas" not in importable("polars")


def test_what_is_not_installed_is_said() -> None:
    with pytest.raises(GradingError, match="no-such-package"):
        importable("no-such-package")
