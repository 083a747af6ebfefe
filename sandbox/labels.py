"""The labels by which customers send goods back: a return has one at a time, by whichever key."""

from dataclasses import dataclass

from sandbox.fields import text
from sandbox.partner import NO_EFFECT, Call, Effect, Entry, Json, NewId
from sandbox.refusals import Refusal

LABEL_ACTIONS = {"label", "void"}


@dataclass(slots=True)
class Label:
    """A paid label of a return: made → void."""

    ref: str
    order: str
    key: str | None
    of: str
    status: str = "made"


class Labels:
    """Makes labels, and has them cost nothing again."""

    def __init__(self) -> None:
        self._labels: dict[str, Label] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Make a label, or void one; raises Refusal for a return that has one."""
        if call.action == "void":
            label = self._labels.get(call.ref or "")
            if label is None:
                raise Refusal(404, "unknown_label", f"Unknown label '{call.ref}'.")
            return _void(label)
        text(call.params, "order")
        of = text(call.params, "return")
        made = [
            label.ref for label in self._labels.values() if (label.of, label.status) == (of, "made")
        ]
        if made:
            raise Refusal(
                409,
                "label_exists",
                f"The return '{of}' has the label '{made[0]}' already.",
                stored=True,
            )
        return Effect(201, ref=new_id("lbl"), parent=of)

    def undo(self, done: Entry) -> Effect:
        """Void the label that was made."""
        return _void(self._labels[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Note the label; return the key that made what is void now."""
        ref = entry.ref or ""
        if entry.effect == "label":
            self._labels[ref] = Label(ref, entry.order or "", entry.key, entry.parent or "")
            return None
        self._labels[ref].status = "void"
        return self._labels[ref].key

    def body(self, entry: Entry) -> Json:
        """Return the label as it was right after the call."""
        label = self._labels[entry.ref or ""]
        return {
            "id": label.ref,
            "status": "made" if entry.action == "label" else "void",
            "tracking": "RET" + label.ref.partition("_")[2].upper(),
            "order": label.order,
            "return": label.of,
        }

    def order_of(self, ref: str) -> str | None:
        """Return the order of a label."""
        label = self._labels.get(ref)
        return label.order if label else None


def _void(label: Label) -> Effect:
    kind = NO_EFFECT if label.status == "void" else "void"
    return Effect(ref=label.ref, parent=label.of, kind=kind)
