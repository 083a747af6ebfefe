"""Bulk operations to look at: the list, a dry run, one under way, and how it ended."""

from collections.abc import Mapping
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ...database import clock
from ...decisions.progress import Refusal
from ...models import Operation
from ...models.operation import Act, ItemState, OperationState
from ...operations import lifecycle, rights, summary
from ...operations.rights import needed
from ...people.redaction import Redactor
from ..forms.operations import Confirmation, Word
from ..queries import operations
from .limits import day_shown
from .live import live
from .permissions import (
    APPROVE,
    BULK,
    OPERATE,
    SEE_PERSONAL,
    person_of,
    redactors_for,
    requires,
    user_of,
)
from .responses import or_404

DEFAULT_RATE = 20
STATES = [("", "any"), ("open", "unfinished"), *OperationState.choices[1:]]
# the parts of the bar of an operation, in order
PARTS = (
    ItemState.FIXED, ItemState.AGAIN, ItemState.OTHER, ItemState.SKIPPED, ItemState.SENT,
)  # fmt: skip


@require_safe
@requires(OPERATE)
def operation_list(request: HttpRequest) -> HttpResponse:
    """List operations, newest first, filtered by the query string."""
    filters = filters_of(request.GET)
    page = operations.operations(filters)
    narrowing = request.GET.copy()
    for name in ("seen", "before"):
        narrowing.pop(name, None)
    context = {
        "now": page.now,
        "page": page,
        "filters": filters,
        "rows": [(row, summary_of(row), bar(row)) for row in page.rows],
        "states": STATES,
        "acts": [("", "any"), *Act.choices],
        "narrowing": narrowing.urlencode(),
        "section": "operations",
        "heading": "Bulk operations",
    }
    return live(request, "ops/operations.html", "ops/_operations.html", context)


@require_safe
@requires(OPERATE)
def operation(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Show a dry run, or an operation's progress and the result of each item."""
    operation = or_404(operations.operation_by_id(operation_id))
    if operation.state == OperationState.DRAFT:
        return dry_run(request, operation)
    return _progress(request, operation)


def dry_run(
    request: HttpRequest,
    operation: Operation,
    *,
    form: Confirmation | None = None,
    problem: str = "",
) -> HttpResponse:
    """Return the page of a dry run; with the form as it was sent, if it was."""
    preview = operation.preview
    eligible = preview["eligible"]
    first = "sample" if operation.sample else "all"
    form = form or Confirmation(
        act=operation.act, forced=operation.forced, initial={"rate": DEFAULT_RATE, "first": first}
    )
    day = day_shown(request)
    context = {
        "operation": operation,
        "preview": preview,
        "form": form,
        "problem": problem,
        "seconds": max(1, round(eligible / DEFAULT_RATE)),
        "day": day,
        "approval": day.excess(eligible, preview["money"]),
        "stopped": preview["skipped"].get(Refusal.IRREVERSIBLE.value, 0),
        "selection": _selection(request, operation),
        "may": may(request, operation),
        "now": clock.database_now(),
        "section": "operations",
    }
    status = 422 if form.is_bound else 409 if problem else 200
    return render(request, "ops/operation_dry_run.html", context, status=status)


def _progress(request: HttpRequest, operation: Operation) -> HttpResponse:
    state = request.GET.get("state", "")
    after = request.GET.get("after", "")
    detail = operations.operation_detail(
        operation,
        state=state if state in ItemState.values else "",
        after=int(after) if after.isdecimal() and len(after) < 19 else None,
    )
    redactors = redactors_for(request, (item.task for item in detail.items))
    context = {
        "now": detail.now,
        "operation": operation,
        "detail": detail,
        "summary": summary_of(operation),
        "bar": bar(operation),
        "selection": _selection(request, operation),
        "items": [
            (item, redactors.get(item.task_id), summary.label(operation.act, item.state))
            for item in detail.items
        ],
        **_sole(detail, redactors),
        "tabs": [("", "all", operation.items), *_tabs(operation)],
        "state": state,
        "items_query": urlencode({"operation": operation.id, "state": state}),
        "left": round(operation.waiting / operation.rate),
        "word": Word(),
        "may": may(request, operation),
        "unconfirmed": _counts_as_asker(request, operation),
        "can_go_on": operation.sample is not None and operation.ended_at is not None,
        "section": "operations",
        "heading": f"{operation.get_act_display()}, {operation.get_state_display().lower()}",
    }
    return live(request, "ops/operation.html", "ops/_operation.html", context)


def _sole(
    detail: operations.OperationDetail, redactors: Mapping[UUID, Redactor]
) -> dict[str, object]:
    """Return the one step of an operation, and what happens to it, for who approves that."""
    item = detail.items[0] if detail.operation.items == 1 and detail.items else None
    if item is None or item.step is None:
        return {}
    change = operations.change_of(item)
    return {"sole": item, "sole_redactor": redactors.get(item.task_id), "sole_change": change}


def may(request: HttpRequest, operation: Operation) -> dict[str, bool]:
    """Return the actions that a user may take on an operation now."""
    user = user_of(request)
    bulky = user.has_perm(BULK)
    return {
        "begin": user.has_perms([BULK, *needed(Act(operation.act), forced=operation.forced)]),
        "force": operation.act == Act.UNDO and user.has_perms([BULK, *rights.FORCED]),
        "pause": bulky and operation.state == OperationState.RUNNING,
        "resume": bulky and operation.state == OperationState.PAUSED,
        "abort": bulky and operation.state in {OperationState.RUNNING, OperationState.PAUSED},
        "take_back": bulky and operation.state in {OperationState.WAITING, OperationState.APPROVAL},
        "approve": _could_approve(request, operation)
        and lifecycle.is_second(operation, person_of(request)),
    }


def _could_approve(request: HttpRequest, operation: Operation) -> bool:
    return operation.state == OperationState.APPROVAL and user_of(request).has_perm(APPROVE)


def _counts_as_asker(request: HttpRequest, operation: Operation) -> bool:
    """Return whether a user cannot approve, although another account asked for it."""
    other = user_of(request).pk != operation.actor_user
    return (
        other
        and _could_approve(request, operation)
        and not lifecycle.is_second(operation, person_of(request))
    )


def summary_of(operation: Operation) -> str:
    """Return the progress of an operation in a sentence."""
    return summary.sentence(operation.act, operation.counts, operation.why)


def bar(operation: Operation) -> list[tuple[str, float, float]]:
    """Return the bar of an operation: (state, where it begins, how long), in percent."""
    parts, at = [], 0.0
    for state in PARTS:
        share = 100 * getattr(operation, state.value) / max(1, operation.items)
        if share:
            parts.append((state.value, round(at, 3), round(share, 3)))
        at += share
    return parts


def _selection(request: HttpRequest, operation: Operation) -> tuple[str, str]:
    """Return what was selected, in words, and the address that shows it, if one does."""
    if "query" in operation.selection and not user_of(request).has_perm(SEE_PERSONAL):
        return "all tasks that a search found", ""  # it may name whom they are for
    if "query" in operation.selection:
        asked = QueryDict(operation.selection["query"]).dict()
        words = " ".join(str(value) for value in asked.values() if value)
        address = f"{reverse('ops:tasks')}?{operation.selection['query']}"
        return f"all tasks that match “{words}”" if words else "all tasks", address
    if "incident" in operation.selection:
        title = operation.incident.title if operation.incident else "an incident"
        return f"all failed steps of the incident “{title}”", ""
    count = len(operation.selection["tasks"])
    return f"{count:,} task{'' if count == 1 else 's'}, selected by hand", ""


def _tabs(operation: Operation) -> list[tuple[str, str, int]]:
    return [
        (state.value, summary.label(operation.act, state.value), getattr(operation, state.value))
        for state in ItemState
        if getattr(operation, state.value)
    ]


def filters_of(asked: QueryDict) -> operations.OperationFilters:
    """Return the filters of a query string."""

    def known(name: str, choices: list[str]) -> str:
        return word if (word := str(asked.get(name, ""))) in choices else ""

    def number(name: str) -> int | None:
        text = str(asked.get(name, ""))
        return int(text) if text.isdecimal() and len(text) < 19 else None

    return operations.OperationFilters(
        state=known("state", [value for value, _ in STATES]),
        act=known("act", Act.values),
        actor=str(asked.get("actor", ""))[:150].replace("\0", ""),
        incident=number("incident"),
        before=number("before"),
    )
