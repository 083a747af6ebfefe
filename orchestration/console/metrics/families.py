"""The kinds of metric, each with the prefix `sas_` of the engine's names."""

from collections.abc import Iterable

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

Sample = tuple[list[str], float]
Buckets = list[tuple[str, float]]  # an upper bound, and how many are below it


def gauge(
    name: str, documentation: str, labels: Iterable[str] = (), *, of: Iterable[Sample]
) -> Metric:
    """Return values that go up and down."""
    return _filled(GaugeMetricFamily(f"sas_{name}", documentation, labels=list(labels)), of)


def counter(
    name: str, documentation: str, labels: Iterable[str] = (), *, of: Iterable[Sample]
) -> Metric:
    """Return values that only rise, but for a new beginning at zero; `_total` is added to the name."""
    return _filled(CounterMetricFamily(f"sas_{name}", documentation, labels=list(labels)), of)


def _filled(metric: GaugeMetricFamily | CounterMetricFamily, of: Iterable[Sample]) -> Metric:
    for values, value in of:
        metric.add_metric(values, value)
    return metric


def histogram(
    name: str, documentation: str, labels: Iterable[str], *, of: Iterable[tuple[list[str], Buckets]]
) -> Metric:
    """Return how many values are below each bound, rising like counters; their sum is not known."""
    metric = HistogramMetricFamily(f"sas_{name}", documentation, labels=list(labels))
    for values, buckets in of:
        metric.add_metric(values, buckets, sum_value=None)
    return metric
