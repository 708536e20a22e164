"""Make synthetic patients with the tables, columns and gaps of the AMP-PD challenge.

As in the challenge's data, the proteins are of little use, what counts is the metric, and when patients come tells how ill they are: those
who are not ill come once a year, the others twice or more. The severity of the ill begins at a random value and grows at a random rate.
The ratings of a visit depend on the severity at that time, and so do, a little, the amounts of a few proteins; those of the other proteins
are noise. Patients of the supplement have no protein samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

PATIENTS, SUPPLEMENT = 120, 200
PROTEINS, TELLING, PEPTIDES_EACH = 40, 6, 2
MONTHS = (0, 3, 6, 12, 18, 24, 30, 36, 48, 60, 72, 84, 96, 108)
SAMPLED_MONTHS = (0, 6, 12, 24, 36, 48, 60, 84)
"""Months of the visits at which proteins are measured."""
SUPPLEMENT_MONTHS = (0, 5, 6, 12, 18, 24, 30, 36)
SCALES = ((3, 2, 1.5), (3.5, 0, 1.5), (10, 4, 3.5), (1.2, -1, 0.9))
"""For each part: points per unit of severity, points at severity 0, and standard deviation of the noise."""
MISSING = (0.001, 0.001, 0.01, 0.3)
"""Share of each part's ratings that are missing."""
MEDICATION = {"On": 0.3, "Off": 0.2, None: 0.5}
PROTEIN_EFFECT, PROTEIN_NOISE = 0.05, 0.35
SEEN_PROTEIN, SEEN_PEPTIDE = 0.95, 0.9
HEALTHY = 0.4
"""Share of the patients who are not ill."""
CAME = ((0.92, 0.92), (0.92, 0.06))
"""Probability that the ill, and the healthy, come to a visit at a whole year, and to any other."""
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


class Tables(NamedTuple):
    """The four tables of the challenge, with all fields as text."""

    clinical: pl.DataFrame
    proteins: pl.DataFrame
    peptides: pl.DataFrame
    supplement: pl.DataFrame


class _Visits(NamedTuple):
    """Visits in the order of patient and month, one entry each."""

    patient: Array
    month: Array
    severity: Array

    @property
    def ids(self) -> list[str]:
        return [f"{patient}_{month}" for patient, month in zip(self.patient, self.month, strict=True)]


def tables(seed: int) -> Tables:
    """Make the four tables of synthetic patients."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(np.arange(50, 65_050))[: PATIENTS + SUPPLEMENT]
    visits = _visits(np.sort(numbers[:PATIENTS]), MONTHS, rng)
    others = _visits(np.sort(numbers[PATIENTS:]), SUPPLEMENT_MONTHS, rng)
    clinical, supplement = _clinical(visits, rng), _clinical(others, rng)
    proteins, peptides = _samples(visits, rng)
    return Tables(clinical, proteins, peptides, supplement)


def _visits(patients: Array, months: tuple[int, ...], rng: np.random.Generator) -> _Visits:
    """Draw who is ill, and each patient's visits: the first one, and later ones with the probability `CAME`."""
    healthy = rng.random(len(patients)) < HEALTHY
    share = np.array(CAME)[healthy.astype(int)[:, None], (np.array(months) % 12 != 0).astype(int)]
    came = rng.random((len(patients), len(months))) < share
    came[:, 0] = True
    start, speed = rng.gamma(4, 0.3, len(patients)), rng.gamma(2, 0.08, len(patients))
    start, speed = np.where(healthy, 0.3 * start, start), np.where(healthy, 0.1 * speed, speed)
    who, which = np.nonzero(came)
    month = np.array(months)[which]
    return _Visits(patients[who], month, start[who] + speed[who] * month / 12)


def _clinical(visits: _Visits, rng: np.random.Generator) -> pl.DataFrame:
    count = len(visits.month)
    columns: dict[str, Any] = {"visit_id": visits.ids, "patient_id": visits.patient, "visit_month": visits.month}
    for part, ((slope, floor, noise), gap) in enumerate(zip(SCALES, MISSING, strict=True), start=1):
        ratings = np.maximum(0, (slope * visits.severity + floor + rng.normal(0, noise, count)).round()).astype(str)
        columns[f"updrs_{part}"] = [None if missing else rating for missing, rating in zip(rng.random(count) < gap, ratings, strict=True)]
    states = rng.choice(len(MEDICATION), count, p=list(MEDICATION.values()))
    columns["upd23b_clinical_state_on_medication"] = [list(MEDICATION)[state] for state in states]
    return pl.DataFrame(columns).with_columns(pl.all().cast(pl.String))


def _samples(visits: _Visits, rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the tables of proteins and peptides of the visits with a sample, in long form as in the challenge."""
    taken = np.flatnonzero(np.isin(visits.month, SAMPLED_MONTHS))
    effects = np.where(np.arange(PROTEINS) < TELLING, rng.choice((-1, 1), PROTEINS) * rng.uniform(0.5, 1.5, PROTEINS), 0)
    effects = PROTEIN_EFFECT * rng.permutation(effects)
    noise = rng.normal(0, PROTEIN_NOISE, (len(taken), PROTEINS))
    amounts = np.exp(10 + effects * (visits.severity[taken, None] - 1.5) + noise)
    names = [f"P{number:05d}" for number in np.sort(rng.choice(99_999, PROTEINS, replace=False))]
    parts = [_peptide(rng) for _ in range(PROTEINS * PEPTIDES_EACH)]
    visit, protein = np.nonzero(rng.random(amounts.shape) < SEEN_PROTEIN)
    keys = pl.DataFrame({"visit_id": visits.ids, "visit_month": visits.month, "patient_id": visits.patient})
    proteins = keys[taken[visit]].with_columns(
        UniProt=pl.Series([names[each] for each in protein]), NPX=pl.Series(amounts[visit, protein].round(1))
    )
    scaled = np.repeat(amounts, PEPTIDES_EACH, axis=1) * rng.lognormal(0, 0.2, (len(taken), len(parts)))
    visit, peptide = np.nonzero(rng.random(scaled.shape) < SEEN_PEPTIDE)
    peptides = keys[taken[visit]].with_columns(
        UniProt=pl.Series([names[each // PEPTIDES_EACH] for each in peptide]),
        Peptide=pl.Series([parts[each] for each in peptide]),
        PeptideAbundance=pl.Series(scaled[visit, peptide].round(1)),
    )
    return proteins.with_columns(pl.all().cast(pl.String)), peptides.with_columns(pl.all().cast(pl.String))


def _peptide(rng: np.random.Generator) -> str:
    """Draw a sequence of amino acids; cysteines are modified ones, written as in the challenge."""
    sequence = "".join(rng.choice(list(AMINO_ACIDS), rng.integers(7, 20)))
    return sequence.replace("C", "C(UniMod_4)")
