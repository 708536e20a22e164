"""Score the predicted scores by MCRMSE: the root mean squared error of each column, averaged over the six columns."""

from mlagentbench import Number, TableTask, root_mean_squared_error

SCORES = ("cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions")
# The bounds are far beyond any score, yet small enough that the squares of many can be summed.
TABLE = TableTask("text_id", dict.fromkeys(SCORES, Number(-1e12, 1e12)), root_mean_squared_error)
grade = TABLE.grade
