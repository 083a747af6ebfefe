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
    healthy = [f"{result.healthy:.1f}" for result in results.by_rate.values()]
    return "\n".join(
        [
            table(HEAD, map(_row, results.by_rate.values()), names=0),
            "",
            f"healthy, beside each of these: {', '.join(healthy)}/s",
            f"5 % of answers 503 with Retry-After: {_ratio(results.busy)} of healthy",
            f"the agent beside: {results.beside:.1%} in time, p95 {results.beside_p95:.2f} s",
            f"load averages before and after: {', '.join(f'{load:.1f}' for load in results.loads)}",
        ]
    )


def _row(result: RateResult) -> list[str]:
    steady, recovered = result.steady, result.recovered
    return [
        f"{result.failing:.0%}",
        _both(steady, 1, "{:.1f}"),
        _both(steady, result.share(1) if result.healthy else 0, "{:.2f}"),
        _ratio(steady),
        _both(recovered, 1, "{:.1f}"),
        _ratio(recovered),
        "never" if result.full_after is None else f"{result.full_after:.0f} s",
        "" if result.timely is None else f"{result.timely:.1%}",
        *_outage(result.outage),
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
