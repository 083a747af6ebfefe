"""The code of docs/use/recipes.md as it stands, but for its times: half an hour is some seconds here."""

from sasweb.stack.folders import PROJECT
from tests.support.markdown import blocks

PAGE = PROJECT / "docs" / "use" / "recipes.md"
SHORTER = {
    "ends_within=1800": "ends_within=15",
    "ends_within=2 * 3600": "ends_within=15",
    "ends_within=4 * 3600": "ends_within=15",
    "remind=[3 * 3600]": "remind=[3]",
    "look=600": "look=1",
}

code = "\n".join(blocks(PAGE.read_text(), "python"))
for long, short in SHORTER.items():
    if long not in code:
        raise LookupError(f"{PAGE.name} has no {long}")
    code = code.replace(long, short)
exec(compile(code, PAGE.name, "exec"))
