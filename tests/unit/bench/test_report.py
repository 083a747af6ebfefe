"""The report of `python -m bench`."""

from bench import report


def results(**changes):
    system = {
        "label": "this engine",
        "durable": True,
        "tasks_per_second": 612.4,
        "tasks_per_second_best": 700.0,
        "idle_ms": {"p50": 51.2, "p95": 60},
        "half_load_ms": {"p50": 70, "p95": 90},
        "peak_memory_mb": 250.0,
        "repeated_calls": 0,
        "cpu_ms_per_task": {"agent": 0.5, "postgres": 0.25},
    }
    return {
        "systems": {"engine": system},
        "machine": {"cores": 2, "load_before": 0.1, "load_after": 2.0},
        "ratio": {"durable": 3.456, "any": None, "queue": 1.05},
        "ratio_of_best_runs": {"durable": None, "any": None, "queue": None},
        "share_of_limit": None,
        "idle_p50_without_remote_calls_ms": 21.2,
        "flatness": None,
        "missed": [],
        **changes,
    }


def test_last_line_with_and_without_a_ratio():
    assert report.last_line(results()) == "ratio durable=3.46 any=n/a queue=1.05"


def test_tables_name_systems_and_kinds():
    text = report.markdown(results())
    assert "| this engine | yes | 612 (700) | 51 / 60 | 70 / 90 | 250 MB |" in text
    assert "| system | agent | postgres | sum |" in text
    assert "| this engine | 0.50 | 0.25 | 0.75 |" in text


def test_ratio_of_best_runs_only_where_measured():
    assert "best run of each" not in report.markdown(results())
    text = report.markdown(results(ratio_of_best_runs={"durable": 3.333, "any": 2.5}))
    assert "durable=3.33 any=2.50" in text


def test_report_with_flatness_and_missed_target():
    flat = {"tasks": [1_000, 50_000], "cpu_ms_per_task": [1.0, 1.3], "ratio": 1.3}
    text = report.markdown(results(flatness=flat, missed=["It is slow."]))
    assert "1.00 ms in batches of 1,000, 1.30 ms in one of 50,000: 1.30 times as much" in text
    assert text.endswith("It is slow.")


def test_share_of_the_limit_only_where_measured():
    assert "calls alone" not in report.markdown(results())
    assert "what the calls alone allow: 57%" in report.markdown(results(share_of_limit=0.571))


def test_calls_that_a_peer_repeated_are_named():
    text = report.markdown(results())
    assert "more than once" not in text
    measured = results()
    measured["systems"]["engine"]["repeated_calls"] = 31
    assert "this engine: 31 calls were made more than once." in report.markdown(measured)
