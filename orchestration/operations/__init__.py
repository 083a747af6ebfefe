"""Bulk operations: durable acts on many steps or tasks, at a rate, followed to a truthful end.

- `draft` is the dry run of a selection; `confirm` freezes its items, and may need `approve`;
- `advance` is what the leading supervisor does with each sweep: sends what the rate allows, and
  finds out what became of what was sent;
- `pause`, `resume` and `abort` are for anybody who may;
- `sentence` says how it stands, or ended: it counts what was processed, never what was queued.
"""

from .begin import approve, confirm, draft, preview, too_big
from .control import abort, pause, resume
from .meaning import Meaningless, meaning
from .pace import allowance, sentence
from .run import advance, forget_drafts
from .selection import Chosen, figures, freeze

__all__ = [
    "Chosen",
    "Meaningless",
    "abort",
    "advance",
    "allowance",
    "approve",
    "confirm",
    "draft",
    "figures",
    "forget_drafts",
    "freeze",
    "meaning",
    "pause",
    "preview",
    "resume",
    "sentence",
    "too_big",
]
