"""What benchmarks print: progress, Markdown tables, missed targets and the last line for scripts."""

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence


def progress(line: str) -> None:
    """Print a line with the time of day to standard error."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> str:
    """Return a Markdown table; all columns after the first `names` are aligned right."""
    rule = ["---"] * names + ["--:"] * (len(head) - names)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))


def interruptible(measure: Callable[[Namespace], int], options: Namespace) -> int:
    """Measure; stop everything and exit with 130 at SIGINT or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return measure(options)
    except KeyboardInterrupt:
        sys.stderr.write("Stopped; no process is left running.\n")
        sys.stderr.flush()
        os._exit(130)  # threads may sleep for minutes


def conclude(missed: Sequence[str], last_line: str = "") -> int:
    """Print the missed targets, then the line for scripts; return the exit code."""
    for sentence in missed:
        sys.stderr.write(f"Missed: {sentence}\n")
    sys.stderr.flush()
    if last_line:
        sys.stdout.write(f"{last_line}\n")
    return 1 if missed else 0
