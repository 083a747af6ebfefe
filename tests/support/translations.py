"""Translatable messages of the shop; `python -m tests.support.translations` updates the catalogues.

It needs no gettext: Django converts the templates, and modules are parsed.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib
from django.utils.translation.template import templatize

ROOT = Path(__file__).parents[2]
CATALOGUES = sorted((ROOT / "locale").glob("*/LC_MESSAGES/django.po"))
TEMPLATES = ROOT / "templates"
STAFF = {"ops", "admin", "registration"}  # pages that speak English only
CALLS = {"_": 1, "gettext": 1, "gettext_lazy": 1, "gettext_noop": 1, "pgettext": 2}
TEXT = r"""u?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
CALL = re.compile(rf"\b(n?)gettext\(\s*{TEXT}(?:\s*,\s*{TEXT})?")

Message = tuple[str, str, str]  # context, text, plural


def messages() -> set[Message]:
    """Return every translatable message."""
    return {*_in_modules(), *_in_templates()}


def _in_modules() -> Iterator[Message]:
    for path in (*(ROOT / "orders").rglob("*.py"), *(ROOT / "sasweb").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                count = CALLS.get(node.func.id, 0)
                texts = [arg.value for arg in node.args[:count] if isinstance(arg, ast.Constant)]
                if count and len(texts) == count:
                    yield ("" if count == 1 else str(texts[0]), str(texts[-1]), "")


def _in_templates() -> Iterator[Message]:
    for path in TEMPLATES.rglob("*.*"):
        if path.relative_to(TEMPLATES).parts[0] in STAFF:
            continue
        for many, text, plural in CALL.findall(templatize(path.read_text())):
            more = ast.literal_eval(plural) if many else ""
            yield ("", ast.literal_eval(text), more)


def message_of(entry: polib.POEntry) -> Message:
    """Return the message of an entry."""
    return (entry.msgctxt or "", entry.msgid, entry.msgid_plural or "")


def update(path: Path) -> list[str]:
    """Add new messages to a catalogue, drop old ones, compile it; return the untranslated ones."""
    known = polib.pofile(str(path), wrapwidth=0)
    required = messages()
    entries = [entry for entry in known if message_of(entry) in required]
    new = required - {message_of(entry) for entry in entries}
    known[:] = entries
    for context, text, plural in new:
        forms = {"msgid_plural": plural, "msgstr_plural": {0: "", 1: ""}} if plural else {}
        known.append(polib.POEntry(msgctxt=context or None, msgid=text, msgstr="", **forms))
    known.sort(key=lambda entry: (entry.msgid.lower(), entry.msgctxt or ""))
    known.save()
    known.save_as_mofile(str(path.with_suffix(".mo")))
    return [entry.msgid for entry in known.untranslated_entries()]


if __name__ == "__main__":
    lacking = [f"{path.parents[1].name}: {text}" for path in CATALOGUES for text in update(path)]
    print("\n".join(lacking), file=sys.stderr)
    sys.exit(bool(lacking))
