"""Intervals, tests and robust averages over numbers alone: no run, and no task, is known here."""
