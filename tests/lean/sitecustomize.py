"""On the PYTHONPATH of a command it is in an environment as `make install` leaves it: without the providers' packages.

Inspect imports these where it finds them, whatever the model, which takes longer than all else that a short run does.
"""

import sys

for name in ("openai", "anthropic"):
    sys.modules[name] = None  # type: ignore[assignment]
