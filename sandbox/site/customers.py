"""The switch for the demo's customers, as the page of the partners shows it."""

from sandbox.demand import RATES, Demand
from sandbox.site.frame import count


def customers(demand: Demand) -> str:
    """Return the switch, or nothing where no program obeys it."""
    return f'<section id="demand" data-live-list>{_switch(demand) if demand.followed else ""}</section>'


def _switch(demand: Demand) -> str:
    return (
        '<div id="customers" class="card good"><div class="head">'
        '<h2 id="customers-name">Customers</h2>'
        '<form method="post" action="/demand/switch">'
        '<fieldset aria-labelledby="customers-name">'
        f"{''.join(_button(rate, demand) for rate in RATES)}</fieldset></form></div>"
        f'<p id="customers-now" class="note" data-live>{_now(demand)}</p></div>'
    )


def _button(rate: str, demand: Demand) -> str:
    current = ' aria-current="true"' if rate == demand.wanted else ""
    name = rate.replace(".", "-")
    return (
        f'<button id="rate-{name}" name="rate" value="{rate}"{current} data-live-class>'
        f"{RATES[rate]}</button>"
    )


def _now(demand: Demand) -> str:
    placed = f" {count(demand.placed, 'order')} placed so far." if demand.placed else ""
    if demand.wanted == "0":
        return f"No made-up customers come.{placed}"
    return f"Made-up customers place orders: {RATES[demand.wanted].lower()}.{placed}"
