"""Steps as commands print them."""

from typing import Any

from django.db.models import Case, F, When

from ..decisions import flow_words
from ..states import StepState

OF_WAIT = {
    "begins_at": Case(When(process_state=StepState.WAITING, then=F("awaited__due_at"))),
    "awaited_until": F("awaited__ends_by"),
    "external_id": F("awaited__external_id"),
}


def with_words(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step with words for its time, its condition, its refusals, and why it was skipped."""
    flow = flow_words.stored(step.pop("flow"))
    words = {"needed_if": flow_words.condition(flow), "if_refused": flow_words.refusals(flow)}
    if flow and flow.not_before is not None:
        words["not_before"] = flow_words.template_words(flow.not_before)
    if step["process_state"] == StepState.SKIPPED:
        words["skipped"] = flow_words.why_skipped(flow, step["outcome"], step["error_code"])
    return step | {name: text for name, text in words.items() if text}
