"""Metrics of numbers: worked out by hand, over one column and over several."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from mlagentbench import mean_absolute_error, root_mean_squared_error

ANSWERS = pl.DataFrame({"id": ["a", "b", "c", "d"], "size": [0, 2, 4, 6], "age": [1.0, 1.0, 1.0, 1.0]})
SIZE = np.array([1.0, 3.0, 5.0, 3.0])
AGE = np.array([1.0, 1.0, 3.0, -1.0])


def test_root_mean_squared_errors_of_columns_are_averaged() -> None:
    one, two = root_mean_squared_error(ANSWERS, {"size": SIZE}), root_mean_squared_error(ANSWERS, {"size": SIZE, "age": AGE})

    assert one.value == pytest.approx(3**0.5)
    assert one.details == {"bias": 0.0, "rows": 4}
    assert two.value == pytest.approx((3**0.5 + 2**0.5) / 2)
    assert two.details == pytest.approx({"size": 3**0.5, "age": 2**0.5, "rows": 4})


def test_the_mean_absolute_error_is_over_all_columns() -> None:
    one, two = mean_absolute_error(ANSWERS, {"size": SIZE}), mean_absolute_error(ANSWERS, {"size": SIZE, "age": AGE})

    assert (one.value, one.details) == (1.5, {"median_absolute_error": 1.0, "rows": 4})
    assert (two.value, two.details) == (1.25, {"median_absolute_error": 1.0, "rows": 4})
