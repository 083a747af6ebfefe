"""The demo's switch on the partners' page."""

from sandbox.demo_switch import RATES, DemoSwitch
from sandbox.site.layout import count


def demo_switch(switch: DemoSwitch) -> str:
    """Return the section with the switch, empty unless a demo is connected."""
    card = _card(switch) if switch.connected else ""
    return f'<section id="demand" data-live-list>{card}</section>'


def _card(switch: DemoSwitch) -> str:
    return (
        '<div id="customers" class="card good"><div class="head">'
        '<h2 id="customers-name">Customers</h2>'
        '<form method="post" action="/demand/switch">'
        '<fieldset aria-labelledby="customers-name">'
        f"{''.join(_button(rate, switch) for rate in RATES)}</fieldset></form></div>"
        f'<p id="customers-now" class="note" data-live data-rate="{switch.rate}" '
        f'data-placed="{switch.placed}">{_current(switch)}</p></div>'
    )


def _button(rate: str, switch: DemoSwitch) -> str:
    current = ' aria-current="true"' if rate == switch.rate else ""
    name = rate.replace(".", "-")
    return (
        f'<button id="rate-{name}" name="rate" value="{rate}"{current} data-live-class>'
        f"{RATES[rate]}</button>"
    )


def _current(switch: DemoSwitch) -> str:
    placed = f" {count(switch.placed, 'order')} placed so far." if switch.placed else ""
    if switch.rate == "0":
        return f"No simulated customers place orders.{placed}"
    return f"Simulated customers place orders: {RATES[switch.rate].lower()}.{placed}"
