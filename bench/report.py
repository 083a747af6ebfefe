"""The report of `python -m bench` as Markdown."""

from typing import Any

from bench.console import table

KINDS = ("submission", "scheduler", "agent", "supervisor", "housekeeper", "worker", "client")
SERVERS = ("postgres", "redis", "sandbox")
HEAD = (
    "system",
    "durable",
    "tasks/s (best run)",
    "idle p50 / p95",
    "half load p50 / p95",
    "memory",
)


def markdown(results: dict[str, Any]) -> str:
    """Return the tables and the lines after them."""
    systems = list(results["systems"].values())
    parts = [
        "3 remote calls of 10 ms per task; latency in ms; memory is the peak of its own processes.",
        table(HEAD, [_speed(system) for system in systems]),
        "CPU per task in ms, under a backlog:",
        _costs(systems),
    ]
    if (left := results["idle_p50_without_remote_calls_ms"]) is not None:
        parts.append(f"This engine's own share of its idle latency (p50 less 30 ms): {left:.0f} ms")
    if (share := results["share_of_limit"]) is not None:
        parts.append(f"This engine's share of what the calls alone allow: {share:.0%}")
    if flat := results["flatness"]:
        (few, many), (less, more) = flat["tasks"], flat["cpu_ms_per_task"]
        parts.append(
            f"CPU per task, its processes, Postgres and Redis together: {less:.2f} ms in batches"
            f" of {few:,}, {more:.2f} ms in one of {many:,}: {flat['ratio']:.2f} times as much"
        )
    machine = results["machine"]
    parts.append(
        f"{machine['cores']} cores; load average {machine['load_before']:.1f} before the first run,"
        f" {machine['load_after']:.1f} after the last"
    )
    if any(results["ratio_of_best_runs"].values()):
        parts.append(
            "By the best run of each, which other load on this machine disturbed least: "
            + _ratios(results["ratio_of_best_runs"])
        )
    parts += [
        f"{system['label']}: {system['repeated_calls']:,} calls were made more than once."
        for system in systems
        if system["repeated_calls"]
    ]
    parts += results["missed"]
    return "\n\n".join(parts)


def last_line(results: dict[str, Any]) -> str:
    """Return the line that scripts read."""
    return f"ratio {_ratios(results['ratio'])}"


def _ratios(ratios: dict[str, float | None]) -> str:
    return " ".join(
        f"{name}=" + ("n/a" if value is None else f"{value:.2f}") for name, value in ratios.items()
    )


def _speed(system: dict[str, Any]) -> list[str]:
    return [
        system["label"],
        "yes" if system["durable"] else "no",
        f"{system['tasks_per_second']:.0f} ({system['tasks_per_second_best']:.0f})",
        *(_pair(system[key]) for key in ("idle_ms", "half_load_ms")),
        f"{system['peak_memory_mb']:.0f} MB",
    ]


def _pair(latency: dict[str, float]) -> str:
    return f"{latency['p50']:.0f} / {latency['p95']:.0f}"


def _costs(systems: list[dict[str, Any]]) -> str:
    used = {kind for system in systems for kind in system["cpu_ms_per_task"]}
    kinds = [kind for kind in (*KINDS, *SERVERS) if kind in used]
    rows = []
    for system in systems:
        cpu = system["cpu_ms_per_task"]
        cells = [f"{cpu[kind]:.2f}" if kind in cpu else "" for kind in kinds]
        rows.append([system["label"], *cells, f"{sum(cpu.values()):.2f}"])
    return table(["system", *kinds, "sum"], rows)
