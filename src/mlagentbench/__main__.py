"""Runs the command line `mlab` as `python -m mlagentbench`."""

from mlagentbench.cli.main import main

main()
