"""How many items may be sent now, and how an operation is told: plain functions of plain data."""

from collections.abc import Mapping

from ..models.operation import Act, ItemState

# what was done to an item, and what it came to in the good case
WORDS = {
    Act.RESUBMIT: ("resubmitted", "fixed"),
    Act.UNDO: ("sent back", "undone"),
    Act.HOLD: ("held", ""),
    Act.RELEASE: ("released", ""),
    Act.BY_HAND: ("taken as done", ""),
}


def allowance(tokens: float, elapsed: float, rate: float, reach: float) -> float:
    """Return how many items the rate allows, `elapsed` seconds after it allowed `tokens`.

    Never more than `reach` seconds' worth, or one: the time in which nobody led is not made up for
    by a burst.
    """
    return min(tokens + max(0.0, elapsed) * rate, max(1.0, rate * reach))


def sentence(act: str, counts: Mapping[str, int], why: Mapping[str, int] | None = None) -> str:
    """Return how an operation stands, or ended, in a sentence; `why` counts reasons for skipping.

    "38 resubmitted: 35 fixed, 2 failed again (same cause), 1 failed (another cause); 4 skipped: …"
    """
    did, good = WORDS[Act(act)]
    sent, fixed, again, other = (
        counts.get(state, 0)
        for state in (ItemState.SENT, ItemState.FIXED, ItemState.AGAIN, ItemState.OTHER)
    )
    parts = [
        (fixed, good),
        (again, "failed again (same cause)"),
        (other, "failed (another cause)"),
        (sent, "still under way"),
    ]
    told = ", ".join(f"{count:,} {words}" for count, words in parts if count and words)
    done = sent + fixed + again + other
    said = [f"{done:,} {did}" + (f": {told}" if told else "")] if done else []
    if skipped := counts.get(ItemState.SKIPPED, 0):
        reasons = sorted((why or {}).items(), key=lambda pair: (-pair[1], pair[0]))
        because = ", ".join(f"{count:,} because {reason}" for reason, count in reasons)
        said.append(f"{skipped:,} skipped" + (f": {because}" if because else ""))
    if waiting := counts.get(ItemState.WAITING, 0):
        said.append(f"{waiting:,} waiting for {'its' if waiting == 1 else 'their'} turn")
    return "; ".join(said) or "nothing was done"
