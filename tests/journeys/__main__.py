"""`make journeys`: each journey in a real browser, with a stopwatch and a count of clicks.

Writes docs/results/journeys.md with `--document`.
"""

import argparse
import sys
from collections.abc import Sequence

from playwright.sync_api import expect

from drill.stack import Stack
from drill.verdict import audited
from sasweb.stack import folders
from tests.journeys import exchanges, other_orders, payments, removals, shop_and_operations
from tests.journeys.hand import Journey
from tests.journeys.own_workflow import own_workflow
from tests.support.chromium import launched

PAGE = folders.PROJECT / "docs" / "results" / "journeys.md"
ON_A_STACK = (
    shop_and_operations.first_order,
    payments.payment_confirmed,
    payments.payment_by_keyboard,
    payments.payment_refused,
    payments.payment_abandoned,
    payments.risky_order,
    other_orders.parcel_lost,
    other_orders.gift_card,
    other_orders.preorder,
    removals.line_cancelled,
    other_orders.goods_returned,
    exchanges.goods_exchanged,
    other_orders.subscription_paused,
    other_orders.passkey,
    other_orders.stuck_order,
    shop_and_operations.outage,
    shop_and_operations.one_task,
    shop_and_operations.one_incident,
    shop_and_operations.policy,
)
HEAD = """# Journeys

`make journeys` has a browser do what people come for, on a stack of its own, and counts.
A list to choose from is two clicks, a shortcut is one. The seconds are those of the software,
from the first page until the goal is seen: a script neither reads nor hesitates.

"""
expect.set_options(timeout=30_000)


def main() -> int:
    """Make each journey; print the table."""
    parser = argparse.ArgumentParser(prog="make journeys", description=__doc__)
    parser.add_argument("--document", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--only", default="", help="only journeys whose function contains this")
    options = parser.parse_args()
    journeys = []
    with audited(Stack("journeys")) as stack, launched() as browser:
        for travel in ON_A_STACK:
            if options.only in travel.__name__:
                sys.stderr.write(f"{travel.__name__} …\n")
                journeys.append(travel(browser, stack))
    if options.only in own_workflow.__name__:
        sys.stderr.write("own_workflow …\n")
        journeys.append(own_workflow())
    text = HEAD + table(journeys)
    sys.stdout.write(text)
    if options.document:
        PAGE.write_text(text)
    return 0


def table(journeys: Sequence[Journey]) -> str:
    """Return the journeys as a table, and below their notes."""
    lines = [
        "| journey | until | clicks | texts typed | commands | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {journey.name} | {journey.goal} | {journey.clicks} | {journey.texts} | {journey.commands} |"
            f" {journey.seconds:.1f} |"
            for journey in journeys
        ),
    ]
    notes = [f"- {journey.name}: {note}" for journey in journeys for note in journey.notes]
    return "\n".join([*lines, "", *notes]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
