"""The task's proof: submissions that must win, lose or be refused, and scripts that must be a success or must not."""

from functools import partial

from mlagentbench import edited_starter

from .grade import TABLE

oracle, naive, invalid = TABLE.oracle, TABLE.naive, TABLE.invalid
# Strength follows the ratio of water to cement, and the logarithm of age.
BETTER = {"np.ones(len(x)), x]": "np.ones(len(x)), x, x[:, 1] / x[:, 0], np.log(x[:, 3])]"}
solution = partial(edited_starter, __file__, BETTER)
ineffective = partial(edited_starter, __file__, {"RIDGE = 1e-3": "RIDGE = 10"})
