"""A step's request for reading, with words for what is not known yet."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..decisions import flow_words
from ..models import Step
from ..payloads.placeholders import EACH, FIRST, KEYS, LOADED, MARK, filled
from ..states import StepState


def template_words(value: Any) -> Any:
    """Return a request that is a template still, with words for what will be put in."""
    if isinstance(value, list):
        return [template_words(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    return _placeholder(value) or {name: template_words(part) for name, part in value.items()}


def _placeholder(value: Mapping[str, Any]) -> str:
    """Return words for an object that is a placeholder, or ""."""
    if value.keys() in ({FIRST}, {EACH}):
        return f"«{flow_words.template_words(value)}»"
    if len(value) == 1 and value.keys() <= set(flow_words.HOLDS):
        return f"«whether {flow_words.template_words(value)}»"
    if value.keys() != {MARK}:
        return ""
    origin, *path = value[MARK]
    if origin == KEYS:
        return f"«the idempotency key of {path[0]}»"
    if origin == LOADED:
        return loaded_words(path)
    return f"«{'.'.join(path) or 'all'} of {f'the result of {origin}' if origin else 'the input'}»"


def request_words(step: Step) -> Any:
    """Return what a step's agent is sent, with words for what is loaded when it is."""
    loads = step.loads or ()
    if step.process_state == StepState.WAITING or _is_never_sent(step):
        return template_words(step.request)
    return filled(step.request, loads, [loaded_words(path) for _, path in loads])


def _is_never_sent(step: Step) -> bool:
    """Return whether a step was skipped by its condition: its request stays a template."""
    return step.process_state == StepState.SKIPPED and not step.attempt


def loaded_words(path: Sequence[str]) -> str:
    """Return words for what the workflow loads."""
    return f"«{'.'.join(path) or 'all'}, loaded on dispatch»"
