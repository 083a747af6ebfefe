"""The failure drill: real processes, real faults, and a verdict on every order.

`python -m drill` starts a whole stack of its own, applies the failure modes of `drill/modes/` while
orders are in flight, heals them, waits until all orders have ended, and audits. `make drill` calls it.

The starters that tests and benchmarks share are here too: `process` (one child process), `servers`
(Postgres, Redis and the sandbox alone) and `stack` (the whole system).
"""
