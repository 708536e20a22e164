"""`python -m mlagentbench` is `mlab`."""

from mlagentbench.cli.main import main

main()
