"""A partner whose webhooks come before, after, twice, in contradiction, at once, or never."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import django

# what becomes of each charge, in turn
KINDS = ("after", "before", "twice", "contradicted", "at once", "declined", "never")
PAID, DECLINED = "paid", "declined"


def events(what: str, kind: str, charge: str) -> Iterator[tuple[str, str]]:
    """Yield the events of a charge in a phase: their ids, and what they say."""
    first, second = f"{charge}-1", f"{charge}-2"
    match what, kind:
        case "early", "before":
            yield first, PAID
        case "on time", "after":
            yield first, PAID
        case "on time", "twice":
            yield from [(first, PAID)] * 2
        case "on time", "contradicted" | "at once":
            yield from [(first, PAID), (second, DECLINED)]
        case "on time", "declined":
            yield from [(first, DECLINED), (second, PAID)]
        case "late", "never":
            yield first, PAID


def post(event: str, charge: str, says: str) -> int:
    """POST an event as the service would; return the status of the answer."""
    from orchestration.testing import webhooks
    from tests.stack.waiting.workflow import SECRET

    body = json.dumps({"id": event, "charge": charge, "says": says}).encode()
    signed = webhooks.standard(body, SECRET)
    address = f"http://127.0.0.1:{os.environ['PORT']}/hooks/cards/"
    request = urllib.request.Request(address, body, dict(signed.headers))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - of the stack
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def main(what: str, count: str) -> None:
    """Submit the orders, or post the events of a phase; print what was answered."""
    django.setup()
    from orchestration.api import submit

    answers = []
    with ThreadPoolExecutor(4) as pool:
        for number in range(int(count)):
            kind, charge = KINDS[number % len(KINDS)], f"card-{number}"
            if what == "submit":
                within = 3.0 if kind == "never" else 600.0
                submit("by_card", reference=charge, data={"within": within})
            sent = [(event, charge, says) for event, says in events(what, kind, charge)]
            if kind == "at once":
                answers += pool.map(post, *zip(*sent, strict=True)) if sent else []
            else:
                answers += [post(*event) for event in sent]
    print(sorted(set(answers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
