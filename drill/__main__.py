"""`python -m drill`: apply the failure modes to a stack of its own, and print a verdict on each."""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence

from drill import report
from drill.recipes import recipes
from drill.run import Result, drill, prepare
from drill.stack import Stack
from drill.table import FULL, SHORT, Mode, load

PAIRS = {SHORT: 3, FULL: 40}


def main() -> int:
    """Run the selection; return 0 only if every verdict is good."""
    options = _options()
    table = load()
    modes = _chosen(table, options)
    if options.list:
        for mode in modes:
            shown = mode.recipe or ", ".join(mode.shown_by)
            print(f"{mode.id:<44} {mode.selection:<6} {mode.what} [{shown}]")
        return 0
    if options.document:
        report.write(report.MODES, report.modes(table))
        return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if options.json else _print
    drilled = [mode for mode in modes if mode.recipe]
    pairs = [] if options.mode else _pairs(table, options, seed)
    say(f"{len(drilled)} modes, then {len(pairs)} pairs drawn from seed {seed} (--seed {seed})\n")
    started = time.monotonic()
    results = _drill([*([mode] for mode in drilled), *pairs], say)
    took = (time.monotonic() - started) / 60
    bad = [result for result in results if not result.verdict.good]
    said = (
        f"{len(results)} drills, {sum(result.orders for result in results)} orders, "
        f"{took:.0f} minutes, seed {seed}: {len(results) - len(bad)} good, {len(bad)} bad."
    )
    _summary(results, said, say)
    if options.json:
        print(report.as_json(results, seed))
    if options.write:
        report.write(report.RESULTS, report.results(table, results))
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m drill", description=__doc__)
    parser.add_argument("mode", nargs="*", help="ids of modes; a+b is a pair. Default: a selection")
    parser.add_argument("--full", action="store_true", default=os.environ.get("DRILL") == FULL)
    parser.add_argument("--family", help="only modes of this family")
    parser.add_argument("--seed", type=int, help="from which the pairs are drawn")
    parser.add_argument("--pairs", type=int, help="how many pairs")
    parser.add_argument("--list", action="store_true", help="only list the modes")
    parser.add_argument("--document", action="store_true", help="only list the modes in the docs")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--write", action="store_true", help="put the results into the docs")
    return parser.parse_args()


def _chosen(table: Sequence[Mode], options: argparse.Namespace) -> list[Mode]:
    by_id = {mode.id: mode for mode in table}
    if options.mode:
        if unknown := [name for name in options.mode if name not in by_id]:
            raise SystemExit(f"There is no mode {', '.join(unknown)}; --list lists them.")
        return [by_id[name] for name in options.mode]
    modes = [mode for mode in table if options.full or mode.selection == SHORT]
    return [mode for mode in modes if options.family in (None, mode.family)]


def _pairs(table: Sequence[Mode], options: argparse.Namespace, seed: int) -> list[list[Mode]]:
    """Draw pairs of modes that can be applied at the same time."""
    count = options.pairs if options.pairs is not None else PAIRS[FULL if options.full else SHORT]
    chance = random.Random(seed)  # noqa: S311 - it must be repeatable
    fit = [mode for mode in table if mode.pairs and mode.recipe]
    pairs: list[list[Mode]] = []
    while len(pairs) < count:
        first, second = chance.sample(fit, 2)
        # two of one kind would undo each other's preparations
        if first.family.split(",")[0] != second.family.split(",")[0]:
            pairs.append([first, second])
    return pairs


def _drill(drills: Sequence[Sequence[Mode]], say: report.Say) -> list[Result]:
    """Run the drills on one stack; after a bad one, the next has a fresh stack."""
    results: list[Result] = []
    stack: Stack | None = None
    say(report.line(report.HEAD))
    try:
        for modes in drills:
            assert all(mode.recipe in recipes for mode in modes), "an unknown recipe"
            if stack is None:
                stack = Stack("drill").start()
                prepare(stack)
            result = drill(stack, modes)
            results.append(result)
            say(report.line(report.cells(result)))
            for trouble in report.troubles(result):
                say(trouble)
            if not result.verdict.good:
                stack.keep(result.mode)
                stack.stop()
                stack = None
    finally:
        if stack is not None:
            stack.stop()
    return results


def _summary(results: Sequence[Result], said: str, say: report.Say) -> None:
    say("\n" + report.line(report.HEAD))
    for result in results:
        say(report.line(report.cells(result)))
    say("\n" + said)


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
