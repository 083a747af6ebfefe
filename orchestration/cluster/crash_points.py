"""Named points at which tests and drills kill a process; inactive unless CRASH_AT names one.

`CRASH_AT=scheduler.after_claim:3` kills the process, as kill -9 does, when it passes that point for
the third time. `CRASH_AT=agent.before_call:1:<reference>` counts only passes with that task.
Only the environment variable turns it on: no setting or page can.
"""

import os
import signal

_point, _number, _subject, *_ = f"{os.environ.get('CRASH_AT', '')}::".split(":")
_left = int(_number or 1)


def reached(point: str, subject: object = True) -> None:
    """Kill this process if the count is reached; a pass without a subject does not count."""
    global _left  # noqa: PLW0603 - it counts for the whole process
    if point != _point or not subject or (_subject and subject != _subject):
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
