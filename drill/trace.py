"""`python -m drill.trace`: one order on a stack of its own, and its trace as a collector gets it.

The shipper fails until the first attempt is over, so that the trace has a retry.
"""

import sys

from drill.collector import Collector, tree
from drill.shopper import Shopper
from drill.stack import Stack
from drill.verdict import audited
from orchestration.tracing import ids

END = "status completed"  # the last thing that happens to an order that goes well
FAULT = {"partner": "shipping", "action": "book", "fault": "status", "times": 2}


def main() -> int:
    """Print the tree of the order's trace; return 0 if it is whole."""
    with Collector().serving() as collector:
        stack = Stack(
            "trace", OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint, OTEL_BSP_SCHEDULE_DELAY="200"
        )
        with audited(stack):  # at its stop each process sends what it still has
            stack.sandbox("/faults", {"faults": [FAULT]}, "PUT")
            order = Shopper(stack.port).buy()
            trace = ids.trace_id(order)
            collector.trace(trace, until=END)
        spans = collector.trace(trace)
    print(f"order {order}, trace {trace}\n\n{tree(spans)}")
    known = {span.id for span in spans}
    lost = [span.name for span in spans if span.parent and span.parent not in known]
    if lost:
        print(f"\nwithout their parents: {', '.join(lost)}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
