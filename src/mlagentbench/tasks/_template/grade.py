"""Score the strengths by their root mean squared error, in MPa."""

from mlagentbench import Number, TableTask, root_mean_squared_error

TABLE = TableTask("id", {"strength": Number(-1000, 1000)}, root_mean_squared_error)
grade = TABLE.grade
