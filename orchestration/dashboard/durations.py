"""The one way to write a duration: "250 ms", "1.2 s", "19 min 43 s", "2 h 5 min", "3 d 4 h"."""

UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units; `ops.js` writes whole seconds the same way."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0005 else "0 s"
    tenths = round(seconds, 1)
    if tenths < 60:
        return f"{tenths:.1f}".removesuffix(".0") + " s"
    whole = int(tenths)
    large, name, small, rest_name = next(unit for unit in UNITS if whole >= unit[0])
    rest = whole % large // small
    return f"{whole // large:,} {name}" + (f" {rest} {rest_name}" if rest else "")
