"""The steps from raw to true readings, as `data/notes.md` tells of them.

Each takes

    reading   the readings before it, whole numbers, in the order of the rows
    table     the columns of `data/readings.csv`, by name
    earlier   the readings before each earlier step: `earlier[0]` is the raw ones, `earlier[-1]` those before the step before this one

and returns the readings after it, which are then taken modulo 97.
"""


def step_1(reading, table, earlier):
    return reading


def step_2(reading, table, earlier):
    return reading


def step_3(reading, table, earlier):
    return reading


def step_4(reading, table, earlier):
    return reading


def step_5(reading, table, earlier):
    return reading


def step_6(reading, table, earlier):
    return reading


STEPS = [step_1, step_2, step_3, step_4, step_5, step_6]
