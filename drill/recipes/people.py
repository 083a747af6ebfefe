"""Customers who send the same page repeatedly."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from drill.recipes import Running, recipe
from drill.shopper import Shopper


@recipe
def same_page_sent_often(run: Running, *, posts: int = 50) -> Iterator[None]:
    """Send one checkout page many times at once: this makes one order."""
    shopper = Shopper(run.stack.port)
    token = shopper.open_checkout()
    with ThreadPoolExecutor(posts) as pool:
        orders = set(pool.map(lambda _: shopper.send(token), range(posts)))
    assert len(orders) == 1, f"one page made {len(orders)} orders"
    run.orders += orders
    yield
