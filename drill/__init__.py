"""The failure drill: real processes, real faults, and a verdict on every order.

`python -m drill` starts a whole stack of its own, applies the failure modes of `drill/modes/` while
orders are in flight, heals, waits for quiet, and audits. `make drill` calls it.
"""
