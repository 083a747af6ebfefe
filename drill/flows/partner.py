"""A partner whose webhooks come before, after, twice, in contradiction, or never; it repeats lost ones.

Run in a stack's environment: `python -m drill.flows.partner PREFIX NUMBER`. It submits that number of tasks
of each kind, with references "prefix-kind-number", and prints how many webhooks were not taken at first.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from urllib.parse import quote

import django

from drill.waiting import wait_for

PAID, DECLINED = "paid", "declined"
EARLY, CHARGED, AWAITED, ENDED = "early", "charged", "awaited", "ended"  # when webhooks come
# What it reports of each kind, and when: what stands together is sent one after the other, and each of `BOTH`
# beside the other. Of `ASKED` it says how they ended to those who ask.
REPORTS: dict[str, dict[str, list[str]]] = {
    "before": {EARLY: [PAID]},
    "at_once": {CHARGED: [PAID]},
    "after": {AWAITED: [PAID]},
    "twice": {EARLY: [PAID], AWAITED: [PAID]},
    "contradicted": {AWAITED: [PAID, DECLINED]},
    "declined": {AWAITED: [DECLINED, PAID]},
    "both": {AWAITED: [PAID, DECLINED]},
    "asked": {},
    "asked_late": {ENDED: [DECLINED]},
    "refused": {},
    "never": {ENDED: [PAID]},
}
BOTH = {"both"}
ASKED = {"asked": PAID, "asked_late": PAID, "refused": DECLINED}
NEVER = {"never"}
SHORT_S, LONG_S = 4.0, 600.0  # within which a charge ends
PATIENCE_S = 90.0

AWAITING = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.name = 'pay' AND s.direction = 'do'
    AND s.process_state NOT IN ('waiting', 'pending', 'processing')
"""
OVER = """
SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND state IN ('processed', 'undone')
"""


class Sender:
    """POSTs webhooks; `broken` counts those that were not taken."""

    def __init__(self) -> None:
        self.broken = 0

    def send(self, charge: str, says: str) -> None:
        """POST one as a service does: again, until it is taken."""
        wait_for(lambda: self._is_taken(charge, says), f"{charge} is reported", PATIENCE_S)

    def send_all(self, charge: str, events: Iterable[str]) -> None:
        """POST several, each once the one before is taken."""
        for says in events:
            self.send(charge, says)

    def _is_taken(self, charge: str, says: str) -> bool:
        from drill.flows.workflow import SECRET
        from orchestration.testing import webhooks

        event = {"id": f"{charge}-{says}", "charge": charge, "says": says}
        body = json.dumps(event).encode()
        headers = dict(webhooks.standard(body, SECRET).headers)
        address = f"http://127.0.0.1:{os.environ['PORT']}/hooks/bench/"
        request = urllib.request.Request(address, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10):  # noqa: S310 - of the stack
                return True
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise
        except (OSError, HTTPException):
            pass
        self.broken += 1
        return False


def sandbox(path: str, body: object = None, **headers: str) -> dict[str, object]:
    """Send a request to the sandbox; return its answer."""
    content = json.dumps(body).encode() if body else None
    headers |= {"Content-Type": "application/json"}
    address = f"http://127.0.0.1:{os.environ['SANDBOX_PORT']}{path}"
    request = urllib.request.Request(address, content, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - of the stack
        known: dict[str, object] = json.load(answer)
        return known


def _wait_for_charges(charges: Iterable[str]) -> None:
    """Wait until the partner has got the request for each of some charges."""
    for charge in charges:
        path = f"/ledger?partner=bench&order={quote(charge)}"
        wait_for(lambda path=path: sandbox(path)["entries"], f"{charge} begins", PATIENCE_S)


def main(prefix: str, number: str) -> None:
    """Submit the tasks, and report about them."""
    django.setup()
    from drill.flows.workflow import end_of
    from orchestration.api import Posting, submit_many
    from orchestration.database import sql

    charges = {f"{prefix}-{kind}-{count}": kind for kind in REPORTS for count in range(int(number))}
    sender = Sender()

    def report(moment: str) -> None:
        """Send all the webhooks of a moment, and wait until they are taken."""
        sending = []
        for charge, kind in charges.items():
            events = REPORTS[kind].get(moment, [])
            parts = [[event] for event in events] if kind in BOTH else [events]
            sending += [pool.submit(sender.send_all, charge, part) for part in parts]
        for sent in sending:
            sent.result()

    def wait_until(statement: str, moment: str) -> None:
        mine = [charge for charge, kind in charges.items() if moment in REPORTS[kind]]
        is_so = [(len(mine),)]
        wait_for(
            lambda: sql.run(statement, [mine]) == is_so, f"all are {moment}", PATIENCE_S, pause=0.1
        )

    with ThreadPoolExecutor(8) as pool:
        for charge in [charge for charge, kind in charges.items() if kind in ASKED]:
            key = end_of(charge, ASKED[charges[charge]])
            sandbox("/bench/calls", {"by": "customer"}, **{"Idempotency-Key": key})
        report(EARLY)
        submit_many(
            [
                Posting(
                    workflow="drill_charge",
                    reference=charge,
                    data={"order": charge, "within": SHORT_S if kind in NEVER else LONG_S},
                )
                for charge, kind in charges.items()
            ]
        )
        _wait_for_charges([charge for charge, kind in charges.items() if CHARGED in REPORTS[kind]])
        report(CHARGED)
        wait_until(AWAITING, AWAITED)
        report(AWAITED)
        wait_until(OVER, ENDED)
        report(ENDED)
    print(sender.broken)


if __name__ == "__main__":
    main(*sys.argv[1:])
