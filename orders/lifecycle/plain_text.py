"""What customers' texts may contain: no characters that are invisible or turn the direction of writing.

A name of such characters is empty on labels, or reads backwards in letters and on the dashboard. Letters of
every script may be used; joiners (U+200C, U+200D) too, as some scripts need them inside a word.
"""

CONTROLS = (
    "\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\ufeff\\ufff0-\\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
BLANKS = "\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0"  # letters and signs that show nothing
HIDDEN = CONTROLS + BLANKS
JOINERS = "\\u034f\\u200c\\u200d\\ufe00-\\ufe0f"  # they show nothing at the beginning of a text

# Patterns of regular expressions, as Python, JSON Schema and pydantic read them
VISIBLE = f"^[^{HIDDEN}]*$"
OPTIONAL = f"^([^\\s{HIDDEN}{JOINERS}]([^{HIDDEN}]*[^\\s{HIDDEN}])?)?$"
TRIMMED = f"^[^\\s{HIDDEN}{JOINERS}]([^{HIDDEN}]*[^\\s{HIDDEN}])?$"
