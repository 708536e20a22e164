"""Experiments: many runs from one file, on this machine or a cluster."""
