"""Score the predictions by their root mean squared error."""

from mlagentbench import Number, TableTask, root_mean_squared_error

# The bounds are far beyond any progression, yet small enough that the squares of many can be summed.
TABLE = TableTask("patient_id", {"progression": Number(-1e12, 1e12)}, root_mean_squared_error)
grade = TABLE.grade
