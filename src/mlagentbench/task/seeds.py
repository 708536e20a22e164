"""The seed that tasks draw their data from.

A script cannot read this package, but it can draw numbers from likely seeds, such as 0, 1 and 42, and find the one whose numbers are in the
public data: it then has the noise of every target and the order of every row. To find this seed, it would have to try them all.
"""

from __future__ import annotations

SEED = 0x27D1_920B_0D9F_E487
"""A random number of 62 bits, drawn anew until the test rows that it chooses in digits-lowlabel and diabetes were neither easier nor harder
than those of most others."""
