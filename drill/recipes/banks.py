"""Payments that their customers confirm at the bank, and what the provider reports of them."""

from collections.abc import Iterator

from drill.recipes import Running, recipe
from drill.recipes.partners import scripted, wait_for_faults

IN_THE_APP = "pm_card_sandbox_bankApp"  # confirmed a second after the request
ORDERS = 30


@recipe
def bank(run: Running, *, card: str = IN_THE_APP, **fault: object) -> Iterator[None]:
    """Place orders with a card whose bank asks, while the provider has a fault."""
    with scripted(run.stack, {"partner": "payment", **fault}):
        run.place(ORDERS, card=card)
        yield
        wait_for_faults(run)
        run.quiet()
