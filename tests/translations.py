"""What the shop says, collected from its sources; `python -m tests.translations` brings the files up.

It needs no gettext on the machine: templates are read as Django reads them, modules by their syntax.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib
from django.utils.translation.template import templatize

ROOT = Path(__file__).parents[1]
CATALOGUES = sorted((ROOT / "locale").glob("*/LC_MESSAGES/django.po"))
TEMPLATES = ROOT / "templates"
STAFF = {"ops", "admin", "registration"}  # pages that speak English only
SAID = {"_": 1, "gettext": 1, "gettext_lazy": 1, "gettext_noop": 1, "pgettext": 2}
TEXT = r"""u?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
CALL = re.compile(rf"\b(n?)gettext\(\s*{TEXT}(?:\s*,\s*{TEXT})?")

Words = tuple[str, str, str]  # context, text, plural


def said() -> set[Words]:
    """Return all that can be translated."""
    return {*_in_modules(), *_in_templates()}


def _in_modules() -> Iterator[Words]:
    for path in (ROOT / "orders").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                count = SAID.get(node.func.id, 0)
                found = [one.value for one in node.args[:count] if isinstance(one, ast.Constant)]
                if count and len(found) == count:
                    yield ("" if count == 1 else str(found[0]), str(found[-1]), "")


def _in_templates() -> Iterator[Words]:
    for path in TEMPLATES.rglob("*.*"):
        if path.relative_to(TEMPLATES).parts[0] in STAFF:
            continue
        for many, text, plural in CALL.findall(templatize(path.read_text())):
            more = ast.literal_eval(plural) if many else ""
            yield ("", ast.literal_eval(text), more)


def words_of(entry: polib.POEntry) -> Words:
    """Return what an entry translates."""
    return (entry.msgctxt or "", entry.msgid, entry.msgid_plural or "")


def update(path: Path) -> list[str]:
    """Add what is new to a catalogue, drop what is not said any more, compile it; return what lacks."""
    known = polib.pofile(str(path), wrapwidth=0)
    wanted = said()
    kept = [entry for entry in known if words_of(entry) in wanted]
    new = wanted - {words_of(entry) for entry in kept}
    known[:] = kept
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
