"""`python -m bench.locked`: what a stranger's row lock costs all that does not need the row.

A backlog of orders is worked off at a rate that small windows and a slow partner set, so that the
machine hardly matters. Each lock is held for a while in a session of its own; how many attempts of
other agents succeed meanwhile is compared with the time just before and just after.
"""

import argparse
import sys
from statistics import mean

from drill.recipes.postgres import DECLINED, LOCKS, NEED_REJECTIONS, held
from drill.stack import POSTED, Stack
from drill.waiting import let_pass, wait_for

TARGET = 0.9  # of the rate without the lock
LATENCY = 0.5  # seconds that a partner takes
POLICY = {"window": 5, "time_allowed": 4, "call_timeout": 2, "tries": 1}
SETTLE = 5.0  # seconds: until the attempts of locked tasks have expired, and what waited is done
SHARE = 20  # one order of these is declined
DONE = """
SELECT count(*) FROM orchestration_attempt
WHERE outcome = 'done' AND agent NOT LIKE 'notification%%'
  AND ended_at > clock_timestamp() - %s * interval '1 second'
"""
# What has not been asked for yet.
DECLINE = """
UPDATE orchestration_step s SET request = jsonb_set(request, '{payment_method}', to_jsonb(%s::text))
FROM orchestration_task t WHERE t.id = s.task_id AND t.reference = ANY(%s)
  AND s.request ? 'payment_method' AND s.process_state = 'pending'
"""
WAITING = "SELECT count(*) FROM orchestration_deadletter WHERE step IS NOT NULL"
BACKLOG = "SELECT count(*) FROM orchestration_task WHERE state = 'pending'"
LINE = "| {lock} | {without:.1f} | {held:.1f} | {share:.2f} |"


def main() -> int:
    """Measure each lock on one stack; return 1 if a rate is below the target."""
    options = parse_options()
    stack = Stack("locked")
    missed = []
    try:
        stack.start()
        stack.policy(**POLICY)
        stack.sandbox("/faults", {"faults": [], "latency": {"*": LATENCY}}, "PUT")
        stock = dict.fromkeys(stack.sandbox("/inventory/stock"), 10_000_000)
        stack.sandbox("/inventory/stock", stock, "PUT")
        _place(stack, options.orders)
        wait_for(lambda: stack.count("SELECT count(*) FROM orchestration_alert"), "an alert", 60)
        let_pass(SETTLE)
        print("| locked | attempts/s without | with | share |")
        print("| --- | --: | --: | --: |")
        before = _rate(stack, options.seconds)
        for lock in options.locks:
            with held(stack, lock) as names:
                assert names, f"there was no {lock}"
                let_pass(SETTLE)
                meanwhile = _rate(stack, options.seconds)
                struck = lock not in NEED_REJECTIONS or stack.count(WAITING)
                assert struck, f"nothing needed the {lock}"
            let_pass(SETTLE)
            after = _rate(stack, options.seconds)
            assert stack.count(BACKLOG), "the orders are at an end: ask for more"
            without = mean((before, after))
            share = meanwhile / without
            print(LINE.format(lock=lock, without=without, held=meanwhile, share=share), flush=True)
            missed += [lock] if share < TARGET else []
            before = after
    finally:
        stack.stop()
    for lock in missed:
        sys.stderr.write(f"Missed: {lock}; the target is {TARGET:g} of the rate without.\n")
    return 1 if missed else 0


def _place(stack: Stack, orders: int) -> None:
    """Place orders, some of them to be declined, mixed all the way."""
    placed = stack.place(orders)
    wait_for(lambda: not stack.count(POSTED), "they are all tasks", 120)
    stack.sql(DECLINE, DECLINED, placed[::SHARE])


def _rate(stack: Stack, seconds: float) -> float:
    """Return how many attempts succeed in a second, for so long from now on."""
    let_pass(seconds)
    return stack.count(DONE, seconds) / seconds


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.locked", description=__doc__)
    parser.add_argument("--orders", type=int, default=1200, help="enough for all the time it takes")
    parser.add_argument("--seconds", type=float, default=10, help="to count, each time")
    parser.add_argument("--locks", nargs="+", choices=LOCKS, default=list(LOCKS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
