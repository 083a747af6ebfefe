"""`make house`: print the layout in numbers; exit with 1 when a limit is broken."""

import argparse
import sys
from pathlib import Path

from .report import page, rows, table

ROOT = Path(__file__).parents[2]
PAGE = Path("docs/results/house.md")


def main() -> int:
    """Measure, print or write, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--document", action="store_true", help=f"write {PAGE} as well")
    parser.add_argument("--details", action="store_true", help="print what each number counts")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to measure")
    options = parser.parse_args()
    measured = rows(options.root)
    print(table(measured))
    if options.document:
        target = options.root / PAGE
        target.parent.mkdir(exist_ok=True)
        target.write_text(page(measured))
    for row in measured:
        if options.details or row.broken:
            print(f"\n{row.name}:", *row.details, sep="\n  ")
    return int(any(row.broken for row in measured))


sys.exit(main())
