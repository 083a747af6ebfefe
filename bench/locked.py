"""`python -m bench.locked`: how a foreign session's row lock slows other work.

Small windows and a slow partner limit the rate at which a backlog of orders is processed, so that the
machine hardly matters. A session of its own holds each lock for some time; the rate of successful
attempts of other agents is compared with the rates just before and just after.
"""

import argparse
import sys
from statistics import mean

from bench.console import conclude
from drill.recipes.postgres import DECLINED, LOCKS, NEED_REJECTIONS, locked
from drill.stack import SUBMITTED, Stack
from drill.waiting import pause, wait_for

TARGET = 0.9  # of the rate without the lock
LATENCY = 0.5  # seconds of a partner's answer
POLICY = {"window": 5, "time_allowed": 4, "call_timeout": 2, "tries": 1}
# seconds until the attempts of locked tasks have expired, or waiting work is processed
SETTLE = 5.0
SHARE = 20  # one of these orders is declined
DONE = """
SELECT count(*) FROM orchestration_attempt
WHERE outcome = 'done' AND agent NOT LIKE 'notification%%'
  AND ended_at > clock_timestamp() - %s * interval '1 second'
"""
# changes orders whose payment has not been requested yet
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
        pause(SETTLE)
        print("| locked | attempts/s without | with | share |")
        print("| --- | --: | --: | --: |")
        before = _rate(stack, options.seconds)
        for lock in options.locks:
            with locked(stack, lock) as names:
                assert names, f"found no {lock}"
                pause(SETTLE)
                meanwhile = _rate(stack, options.seconds)
                struck = lock not in NEED_REJECTIONS or stack.count(WAITING)
                assert struck, f"no reply waited for the {lock}"
            pause(SETTLE)
            after = _rate(stack, options.seconds)
            assert stack.count(BACKLOG), "too few orders: use a larger --orders"
            without = mean((before, after))
            share = meanwhile / without
            print(LINE.format(lock=lock, without=without, held=meanwhile, share=share), flush=True)
            missed += [lock] if share < TARGET else []
            before = after
    finally:
        stack.stop()
    return conclude([f"{lock}; the target is {TARGET:g} of the rate without." for lock in missed])


def _place(stack: Stack, orders: int) -> None:
    """Place orders; every 20th will be declined."""
    placed = stack.place(orders)
    wait_for(lambda: not stack.count(SUBMITTED), "all are tasks", 120)
    stack.sql(DECLINE, DECLINED, placed[::SHARE])


def _rate(stack: Stack, seconds: float) -> float:
    """Return the rate of successful attempts over the next seconds."""
    pause(seconds)
    return stack.count(DONE, seconds) / seconds


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.locked", description=__doc__)
    parser.add_argument("--orders", type=int, default=1200, help="enough for the whole run")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--locks", nargs="+", choices=LOCKS, default=list(LOCKS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
