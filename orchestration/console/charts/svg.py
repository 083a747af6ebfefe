"""A chart's many small parts as markup: a template with loops would take most of a page's time."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .chart import TOP, Chart, Column

CELL = '<td class="num">{}</td>'
ROW = '<tr><th scope="row">{}</th>{}</tr>'
HIT = '<rect class="hit" x="{}" width="{}" y="{}" height="{}"></rect>'
COLUMN = f'<g class="column"><title>{{}}</title>{HIT}{{}}</g>'
BLOCK = '<rect class="{}" x="{}" y="{}" width="{}" height="{}"></rect>'
PIECE = '<polyline class="{}" points="{}"></polyline>'
DOT = '<circle class="{}" cx="{}" cy="{}" r="2"></circle>'


def drawing(chart: Chart) -> SafeString:
    """Return the plot of a chart: columns with their titles, and lines."""
    top, height = f"{TOP:.0f}", f"{float(chart.floor) - TOP:.0f}"
    columns = (
        (column.title, column.x, column.width, top, height, _blocks(column))
        for column in chart.columns
    )
    return format_html("{}{}", format_html_join("", COLUMN, columns), _lines(chart))


def rows(chart: Chart) -> SafeString:
    """Return the rows of the table that has the same values."""
    lines = (
        (f"{moment:%d %b %H:%M}", format_html_join("", CELL, ((value,) for value in values)))
        for moment, values in chart.rows
    )
    return format_html_join("", ROW, lines)


def _blocks(column: Column) -> SafeString:
    blocks = (
        (block.kind, column.x, block.y, column.width, block.height) for block in column.blocks
    )
    return format_html_join("", BLOCK, blocks)


def _lines(chart: Chart) -> SafeString:
    pieces = ((line.kind, piece) for line in chart.lines for piece in line.pieces)
    dots = ((line.kind, x, y) for line in chart.lines for x, y in line.dots)
    return format_html("{}{}", format_html_join("", PIECE, pieces), format_html_join("", DOT, dots))
