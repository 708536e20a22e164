"""Start AIDE in the run's own interpreter, whose packages come before AIDE's. It runs in the agent's sandbox."""

import glob
import sys

sys.path += glob.glob("/opt/aide/lib/python3*/site-packages")
from aide.run import run

run()
