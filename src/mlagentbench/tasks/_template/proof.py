"""The task's proof: submissions that must win, must not, and must be refused, and scripts that must win and must not."""

from __future__ import annotations

from mlagentbench import Files, edited_starter

from .grade import TABLE

LINEAR = """    return np.column_stack([np.ones(len(x)), x])
"""
BETTER = """    cement, water, fly_ash, age, plasticizer = x.T
    terms = [water / (cement + 0.3 * fly_ash), np.log(age), cement / 100, fly_ash / 100, plasticizer]
    terms += [one * other for place, one in enumerate(terms) for other in terms[place:]]
    return np.column_stack([np.ones(len(x)), *terms])
"""

oracle, naive, invalid = TABLE.oracle, TABLE.naive, TABLE.invalid


def solution() -> Files:
    """Return a script that must win: it uses the ratio of water to binder, the logarithm of age, and products of all."""
    return edited_starter(__file__, {LINEAR: BETTER})


def ineffective() -> Files:
    """Return a script that must not win: it changes next to nothing."""
    return edited_starter(__file__, {"RIDGE = 1e-3": "RIDGE = 1e-2"})
