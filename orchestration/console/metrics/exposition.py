"""All metrics as text, in the requested format."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ..queries.system import system
from . import machinery, servers, totals


def expose(accept: str, others: Iterable[Collector] = ()) -> tuple[bytes, str]:
    """Return all metrics, those of `others` too, as an Accept header asks for, and the content type."""
    registry = CollectorRegistry()
    for collector in (_Engine(), *others):
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Engine(Collector):
    """Looks when it is asked."""

    def collect(self) -> Iterator[Metric]:
        """Return every metric of the engine."""
        now = system()
        yield from machinery.metrics(now)
        yield from totals.metrics(now.now)
        yield from servers.metrics(redis=now.redis)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what is registered is only asked once."""
        return ()
