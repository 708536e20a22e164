"""The steps from raw to true readings, in their order; a step that `STEPS` lacks changes nothing.

Each takes

    reading   the readings before it, whole numbers, in the order of the rows
    table     the columns of `data/readings.csv`, by name
    earlier   the readings before each earlier step: `earlier[0]` is the raw ones, `earlier[-1]` those before the step before this one

and returns the readings after it, which are then taken modulo 97. `notes/step_1.md` says what the first step is like, and
`notes/references_1.csv` has the readings after it of some rows.
"""


def step_1(reading, table, earlier):
    return reading


STEPS = [step_1]
