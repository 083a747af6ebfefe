"""Whether a time is past for the engine, too, and not only by a clock that has just jumped."""

import time
from datetime import timedelta

from ... import conf, policies
from ...cluster.leader_election import SUPERVISOR, SWEPT_LATELY
from ...database import clock, sql

SWEEP_WITHIN_S = 2 * conf.LEASE_S  # after a jump, and after a change of leader
SWEPT = f"""
SELECT {SWEPT_LATELY} FROM orchestration_lease WHERE name = %(name)s AND swept_at IS NOT NULL
"""  # noqa: S608 - put together from constants


def is_past(column: str, limit: str) -> str:
    """Return the condition that the time in `column` is past by more than the parameter `limit`, in seconds.

    While the supervisor sweeps (`%(supervised)s`), what was past by its last sweep counts. After a jump of
    the database's clock, deadlines seem past until it has moved them, which it does before it sweeps
    again. Times that it does not move seem as much older as the clock went forward.
    """
    return f"""{column} + (SELECT coalesce(sum(j.seconds), 0) * interval '1 second'
            FROM orchestration_clockjump j WHERE j.seconds > 0 AND j.at > {column})
        < (SELECT least((SELECT clock_timestamp()), (SELECT swept_at FROM orchestration_lease
            WHERE name = '{SUPERVISOR}' AND %(supervised)s)))
        - %({limit})s * interval '1 second'"""  # noqa: S608 - no input in it


def supervised() -> bool:
    """Return whether the supervisor has swept by the clock as it is now; wait for that a moment."""
    give_up_at = clock.steady() + SWEEP_WITHIN_S
    parameters = {"name": SUPERVISOR, "late": timedelta(seconds=policies.patience())}
    while swept := sql.run(SWEPT, parameters):
        if swept[0][0] or clock.steady() > give_up_at:
            return bool(swept[0][0])
        time.sleep(0.2)
    return False  # none ever did
