"""Submit orders, or report about them, run in a stack's environment: early, twice, or in contradiction."""

import sys
from uuid import NAMESPACE_URL, UUID, uuid5

import django


def main(what: str, count: str) -> None:
    """Do something for each order: submit it, or report its charge or its goods."""
    django.setup()
    from orchestration.api import complete, submit

    for number in range(int(count)):
        reference = f"order-{number}"
        known: UUID = uuid5(NAMESPACE_URL, f"{what} {reference}")
        if what == "submit":
            submit("confirm", reference=reference, data={})
        elif what == "decline":
            complete("confirm", reference, "pay", refused="declined", actor="bank", id=known)
        elif what == "pay":
            paid = {"id": f"ch-{number}"}
            complete("confirm", reference, "pay", result=paid, actor="bank", id=known)
        else:
            complete("confirm", reference, "goods_arrived", result={}, actor="gate", id=known)


if __name__ == "__main__":
    main(*sys.argv[1:])
