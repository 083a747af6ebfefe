"""Submit orders with children, run in a stack's environment."""

import sys

import django


def main(*counts: str) -> None:
    """Submit one order with each number of parcels; its reference is the order's number."""
    django.setup()
    from orchestration.api import submit

    for number, count in enumerate(counts):
        submit("split", reference=f"order-{number}", data={"parcels": list(range(int(count)))})


if __name__ == "__main__":
    main(*sys.argv[1:])
