"""`python -m drill`: apply the failure modes to a stack of its own, and print a verdict on each."""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from drill import report
from drill.ha.stacks import KINDS
from drill.modes_table import FULL, HA, SHORT, Mode, load
from drill.recipes import recipes
from drill.run import Result, drill, prepare
from drill.stack import Stack

PAIRS = {SHORT: 3, FULL: 40}


def main() -> int:
    """Run the selected drills; return 0 if every verdict is good."""
    options = _options()
    table = load()
    if options.list:
        for mode in _selected(table, options):
            shown = mode.recipe or ", ".join(mode.shown_by)
            print(f"{mode.id:<44} {mode.selection:<6} {mode.what} [{shown}]")
        return 0
    if options.document:
        report.write(report.MODES, report.modes(table))
        return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if options.json else _print
    if options.mode:
        drills = _named(table, options.mode)
    else:
        single = [[mode] for mode in _selected(table, options) if mode.recipe]
        drills = single + _pairs(table, options, seed)
    pairs = sum(len(modes) > 1 for modes in drills)
    say(f"{len(drills) - pairs} modes, then {pairs} pairs drawn from seed {seed} (--seed {seed})\n")
    started = time.monotonic()
    try:
        results = _drill(drills, options.stacks, say)
    except KeyboardInterrupt:
        os._exit(130)  # threads may still wait for orders of a stopped stack
    minutes = (time.monotonic() - started) / 60
    bad = [result for result in results if not result.verdict.good]
    summary = (
        f"{len(results)} drills, {sum(result.orders for result in results)} orders, "
        f"{minutes:.0f} minutes, seed {seed}: {len(results) - len(bad)} good, {len(bad)} bad."
    )
    _print_summary(results, summary, say)
    if options.json:
        print(report.as_json(results, seed))
    if options.write:
        report.write(report.RESULTS, report.results(table, results))
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m drill", description=__doc__)
    parser.add_argument(
        "mode",
        nargs="*",
        help="ids of modes; a+b is a pair; ha is all with failovers. Default: a selection",
    )
    parser.add_argument("--full", action="store_true", default=os.environ.get("DRILL") == FULL)
    parser.add_argument("--family", help="only modes of this family")
    parser.add_argument("--seed", type=int, help="of the random pairs")
    parser.add_argument("--pairs", type=int, help="number of pairs")
    parser.add_argument("--stacks", type=int, default=1, help="number of drills at the same time")
    parser.add_argument("--list", action="store_true", help="only list the modes")
    parser.add_argument(
        "--document", action="store_true", help="only write the list of modes to the docs"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--write", action="store_true", help="write the results to the docs")
    return parser.parse_args()


def _named(table: Sequence[Mode], names: Sequence[str]) -> list[list[Mode]]:
    """Return one drill for each name: a mode, or several joined by +."""
    by_id = {mode.id: mode for mode in table if mode.recipe}
    every = [mode.id for mode in table if mode.selection == HA]
    names = [mode_id for name in names for mode_id in (every if name == HA else [name])]
    if unknown := {part for name in names for part in name.split("+")} - by_id.keys():
        raise SystemExit(f"Unknown modes: {', '.join(sorted(unknown))}; --list shows all.")
    return [[by_id[part] for part in name.split("+")] for name in names]


def _selected(table: Sequence[Mode], options: argparse.Namespace) -> list[Mode]:
    chosen = {SHORT, FULL} if options.full else {SHORT}
    modes = [mode for mode in table if mode.selection in chosen]
    return [mode for mode in modes if options.family in (None, mode.family)]


def _pairs(table: Sequence[Mode], options: argparse.Namespace, seed: int) -> list[list[Mode]]:
    """Return random pairs of modes that can be applied at the same time."""
    count = options.pairs if options.pairs is not None else PAIRS[FULL if options.full else SHORT]
    chance = random.Random(seed)  # noqa: S311 - repeatable
    fit = [mode for mode in table if mode.pairs and mode.recipe]
    pairs: list[list[Mode]] = []
    while len(pairs) < count:
        first, second = chance.sample(fit, 2)
        # two of one family would undo each other's preparations
        if first.family.split(",")[0] != second.family.split(",")[0]:
            pairs.append([first, second])
    return pairs


class Stacks:
    """`count` stacks side by side; a stack is replaced after a bad drill, or for one of another kind."""

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[str] = SimpleQueue()
        self._running: dict[str, Stack] = {}
        for number in range(1, count + 1):
            self._free.put("drill" if number == 1 else f"drill-{number}")

    def drill(self, modes: Sequence[Mode]) -> Result:
        """Run a drill on a free stack."""
        assert all(mode.recipe in recipes for mode in modes), "an unknown recipe"
        name = self._free.get()
        try:
            kind = modes[0].servers
            if name in self._running and type(self._running[name]) is not KINDS[kind]:
                self._running.pop(name).stop()
            if name not in self._running:
                stack = self._running[name] = KINDS[kind](name).start()
                prepare(stack)
            result = drill(self._running[name], modes)
            if modes[0].selection == HA or not result.verdict.good:
                stack = self._running.pop(name)
                stack.stop()
            if not result.verdict.good:
                stack.keep(result.mode)
            return result
        finally:
            self._free.put(name)

    def stop(self) -> None:
        """Stop all of them."""
        for stack in list(self._running.values()):
            stack.stop()


def _drill(drills: Sequence[Sequence[Mode]], count: int, say: report.Say) -> list[Result]:
    """Run the drills on `count` stacks; return the results in the same order."""
    results: list[Result] = []
    say(report.line(report.HEAD))
    stacks, pool = Stacks(count), ThreadPoolExecutor(count)
    try:
        for result in pool.map(stacks.drill, drills):
            results.append(result)
            say(report.line(report.cells(result)))
            for trouble in report.troubles(result):
                say(trouble)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        stacks.stop()
    return results


def _print_summary(results: Sequence[Result], summary: str, say: report.Say) -> None:
    say("\n" + report.line(report.HEAD))
    for result in results:
        say(report.line(report.cells(result)))
    say("\n" + summary)


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
