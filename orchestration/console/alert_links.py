"""Where each alert leads: the page that shows what it is about, by its fingerprint."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

from django.urls import reverse

from ..dead_letters.actions import Kind

NAME = "([^/]+)"


def tasks(query: str) -> str:
    """Return the address of the list of the tasks that a search finds."""
    return f"{reverse('ops:tasks')}?q={quote(query, safe=':')}"


def _agent(name: str) -> str:
    return f"{reverse('ops:agents')}#agent-{name}"


def _letters(kind: str, name: str) -> str:
    return f"{reverse('ops:dead_letters')}?{urlencode({'kind': kind, 'name': name})}"


def _part_of_system(part: str) -> str:
    return f"{reverse('ops:system')}#h-{part}"


# The first pattern that matches a fingerprint makes its address from the groups. For those of failed steps
# ("step/…", "undo/…") there is none.
RULES: Mapping[str, Callable[..., str]] = {
    rf"late_effect/{NAME}": lambda task: reverse("ops:task", args=[task]),
    r"overdue/(.+)": lambda workflow: tasks(f"workflow:{workflow} is:overdue"),
    rf"system/undo_stuck/{NAME}": lambda workflow: tasks(f"workflow:{workflow} state:undoing"),
    rf"(submission|request|status)/{NAME}": _letters,
    rf"dead_letter/{NAME}": lambda queue: _letters(Kind.INBOX.value, queue),
    r"(?:gate|system/no_worker|system/waiting)/(.+)": _agent,
    r"system/undeclared/": lambda: reverse("ops:agents"),
    rf"system/uncomputed/{NAME}": lambda workflow: (
        f"{reverse('ops:workflows')}#workflow-{workflow}"
    ),
    rf"system/schedule/{NAME}/{NAME}": lambda state, workflow: (
        f"{reverse('ops:schedules')}?{urlencode({'state': state, 'workflow': workflow})}"
    ),
    r"operation/(\d+)": lambda number: reverse("ops:operation", args=[number]),
    r"audit/": lambda: _part_of_system("audit"),
    r"system/status_undelivered/": lambda: _part_of_system("backlogs"),
    r"system/(?:supervisor|housekeeper)/": lambda: _part_of_system("supervisors"),
    r"system/": lambda: _part_of_system("processes"),
}


def alert_address(fingerprint: str, alert: int) -> str:
    """Return the address of the page that an alert is about."""
    for rule, address in RULES.items():
        if match := re.match(rule, fingerprint):
            return address(*match.groups())
    return tasks(f"alert:{alert}")
