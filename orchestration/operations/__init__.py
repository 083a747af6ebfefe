"""Bulk operations: durable actions on many steps or tasks, at a rate, with the result of each item.

- `lifecycle`: `draft` is the dry run of a selection; `confirm` freezes its items, and may need `approve`.
- `runner`: the housekeeper calls `advance`, which sends what the rate allows and checks what was sent.
- `controls`: `pause`, `resume` and `abort`.
- `summary`: the result in a sentence, which counts processed items, never queued ones.
"""
