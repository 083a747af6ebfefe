"""Submit orders to places, run in a stack's environment."""

import sys

import django


def main(*places: str) -> None:
    """Submit one order to each place; its reference is the place and its number."""
    django.setup()
    from orchestration.api import submit

    for number, place in enumerate(places):
        submit("deliver", reference=f"{place}-{number}", data={"to": place})


if __name__ == "__main__":
    main(*sys.argv[1:])
