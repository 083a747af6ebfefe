"""The results of goodput as Markdown. Pure."""

from bench.console import table
from bench.goodput.verdict import Outage, Pair, RateResult, Results

HEAD = (
    "failing",
    "steady /s with, without",
    "of (1 - p) of healthy",
    "ratio",
    "after an outage /s",
    "ratio",
    "full rate after",
    "within 20 s",
    "80 % after a long outage",
    "probes at once",
)


def markdown(results: Results) -> str:
    """Return a table, and lines on the loads beside it."""
    healthy = [f"{found.healthy:.1f}" for found in results.found.values()]
    return "\n".join(
        [
            table(HEAD, map(_row, results.found.values()), names=0),
            "",
            f"healthy, beside each of these: {', '.join(healthy)}/s",
            f"5 % of answers 503 with Retry-After: {_ratio(results.busy)} of healthy",
            f"the agent beside: {results.beside:.1%} in time, p95 {results.beside_p95:.2f} s",
            f"load averages before and after: {', '.join(f'{one:.1f}' for one in results.loads)}",
        ]
    )


def _row(found: RateResult) -> list[str]:
    steady, recovered = found.steady, found.recovered
    return [
        f"{found.failing:.0%}",
        _both(steady, 1, "{:.1f}"),
        _both(steady, found.share(1) if found.healthy else 0, "{:.2f}"),
        _ratio(steady),
        _both(recovered, 1, "{:.1f}"),
        _ratio(recovered),
        "never" if found.full_after is None else f"{found.full_after:.0f} s",
        "" if found.timely is None else f"{found.timely:.1%}",
        *_outage(found.outage),
    ]


def _both(pair: Pair | None, times: float, form: str) -> str:
    return (
        "" if pair is None else f"{form.format(pair.on * times)}, {form.format(pair.off * times)}"
    )


def _ratio(pair: Pair | None) -> str:
    return "" if pair is None else f"{pair.ratio:.2f}"


def _outage(outage: Outage | None) -> tuple[str, str]:
    if outage is None:
        return "", ""
    took = "never" if outage.seconds is None else f"{outage.seconds:.0f} s"
    return took, str(outage.probes)
