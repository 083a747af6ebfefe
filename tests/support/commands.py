"""Management commands, by what they print."""

import json
from io import StringIO

from django.core.management import call_command


def tasks(*arguments):
    """Run `manage.py tasks`; return its JSON."""
    out = StringIO()
    call_command("tasks", *map(str, arguments), stdout=out)
    return json.loads(out.getvalue())
