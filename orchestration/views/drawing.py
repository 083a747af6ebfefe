"""A chart's many small parts as markup: in templates they would take most of a page's time.

Words come from names of agents and series, and are escaped; all else are numbers of our own.
"""

from collections.abc import Iterator, Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe

from .charts import TOP, Chart, Column


def drawing(chart: Chart) -> SafeString:
    """Return what lies between a drawing's axes: columns, each with its words, and lines."""
    hit = f'y="{TOP:.0f}" height="{float(chart.floor) - TOP:.0f}"'
    return mark_safe("".join([*_columns(chart, hit), *_lines(chart)]))  # noqa: S308 - see above


def rows(chart: Chart) -> SafeString:
    """Return the rows of the table that says the same."""
    return mark_safe(  # noqa: S308 - see above
        "".join(
            f'<tr><th scope="row">{moment:%d %b %H:%M}</th>'
            + "".join(f'<td class="num">{escape(value)}</td>' for value in values)
            + "</tr>"
            for moment, values in chart.rows
        )
    )


def _columns(chart: Chart, hit: str) -> Iterator[str]:
    for column in chart.columns:
        yield (
            f'<g class="column"><title>{escape(column.title)}</title>'
            f'<rect class="hit" x="{column.x}" width="{column.width}" {hit}></rect>'
        )
        yield from _blocks(column)
        yield "</g>"


def sparks(columns: Sequence[Column]) -> SafeString:
    """Return the small columns of a table's cell."""
    return mark_safe(  # noqa: S308 - see above
        "".join(block for column in columns for block in _blocks(column))
    )


def _blocks(column: Column) -> Iterator[str]:
    for block in column.blocks:
        yield (
            f'<rect class="{block.kind}" x="{column.x}" y="{block.y}" width="{column.width}"'
            f' height="{block.height}"></rect>'
        )


def _lines(chart: Chart) -> Iterator[str]:
    for line in chart.lines:
        for piece in line.pieces:
            yield f'<polyline class="{line.kind}" points="{piece}"></polyline>'
        for x, y in line.dots:
            yield f'<circle class="{line.kind}" cx="{x}" cy="{y}" r="2"></circle>'
