"""Summarize the progress or result of an operation in a sentence."""

from collections.abc import Mapping

from ..models.operation import Act, ItemState

# how an item ended well
ENDED_WELL = {
    Act.RESUBMIT: "fixed",
    Act.UNDO: "undone",
    Act.HOLD: "held",
    Act.RELEASE: "released",
    Act.BY_HAND: "marked as done",
}
# the action on an item, and its good result
WORDS = {
    Act.RESUBMIT: ("resubmitted", "fixed"),
    Act.UNDO: ("submitted for undo", "undone"),
    Act.HOLD: ("held", ""),
    Act.RELEASE: ("released", ""),
    Act.BY_HAND: ("marked as done", ""),
}


def label(act: str, state: str) -> str:
    """Return the words for the state of an item: one that ended well is named by the action."""
    known = ItemState(state)
    return ENDED_WELL[Act(act)] if known is ItemState.FIXED else known.label.lower()


def sentence(act: str, counts: Mapping[str, int], why: Mapping[str, int] | None = None) -> str:
    """Return the progress or result of an operation; `why` counts reasons for skipped items.

    "38 resubmitted: 35 fixed, 2 failed again (same cause), 1 failed (other cause); 4 skipped: …"
    """
    did, good = WORDS[Act(act)]
    sent, fixed, again, other = (
        counts.get(state, 0)
        for state in (ItemState.SENT, ItemState.FIXED, ItemState.AGAIN, ItemState.OTHER)
    )
    parts = [
        (fixed, good),
        (again, "failed again (same cause)"),
        (other, "failed (other cause)"),
        (sent, "in progress"),
    ]
    results = ", ".join(f"{count:,} {words}" for count, words in parts if count and words)
    done = sent + fixed + again + other
    clauses = [f"{done:,} {did}" + (f": {results}" if results else "")] if done else []
    if skipped := counts.get(ItemState.SKIPPED, 0):
        reasons = sorted((why or {}).items(), key=lambda pair: (-pair[1], pair[0]))
        because = ", ".join(f"{count:,}: {reason}" for reason, count in reasons)
        clauses.append(f"{skipped:,} skipped" + (f" ({because})" if because else ""))
    if waiting := counts.get(ItemState.WAITING, 0):
        clauses.append(f"{waiting:,} waiting")
    return "; ".join(clauses) or "nothing was changed"
