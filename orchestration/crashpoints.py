"""Named points at which drills have a process die; nothing happens unless CRASH_AT names one.

`CRASH_AT=scheduler.after_claim:3` kills the process, as kill -9 does, when it passes that point for
the third time. `CRASH_AT=agent.before_call:1:<reference>` counts only the passings with that task at
hand. For tests and drills only: no setting or page can turn it on.
"""

import os
import signal

_point, _number, _subject, *_ = f"{os.environ.get('CRASH_AT', '')}::".split(":")
_left = int(_number or 1)


def reached(point: str, at_hand: object = True) -> None:
    """Die here if it is time to; a passing with nothing at hand does not count."""
    global _left  # noqa: PLW0603 - it counts for the whole process
    if point != _point or not at_hand or (_subject and at_hand != _subject):
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
