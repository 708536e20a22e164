"""Agreement of two raters, against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from mlagentbench.results.statistics.agreement import agreement
from mlagentbench.results.statistics.intervals import success_rate


def test_kappa_is_that_of_statsmodels() -> None:
    chance = np.random.default_rng(0)
    first = chance.integers(0, 4, 60)
    second = np.where(chance.random(60) < 0.6, first, chance.integers(0, 4, 60))
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)

    found = agreement(list(zip(first.tolist(), second.tolist(), strict=True)))

    assert found is not None
    assert found.kappa == pytest.approx(float(cohens_kappa(table).kappa))
    assert found.share == success_rate(int(np.trace(table)), 60)


def test_where_chance_alone_would_make_them_agree_there_is_no_kappa() -> None:
    found = agreement([("yes", "yes")] * 5)

    assert found is not None and (found.same, found.of, found.kappa) == (5, 5, None)
    assert agreement([]) is None
