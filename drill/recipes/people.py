"""People who click twice, and operators who act at the same time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from drill.recipes import Running, recipe
from drill.shopper import Shopper


@recipe
def same_page_sent_often(run: Running, *, posts: int = 50) -> Iterator[None]:
    """One checkout page is sent many times at once: one order comes of it."""
    shopper = Shopper(run.stack.port)
    token = shopper.open_checkout()
    with ThreadPoolExecutor(posts) as pool:
        orders = set(pool.map(lambda _: shopper.send(token), range(posts)))
    assert len(orders) == 1, f"{len(orders)} orders came of one page"
    run.orders += orders
    yield
