"""The invariants by their numbers, and conditions that several checks share."""

from ... import conf

INVARIANTS = {
    1: "no loss",
    2: "no phantom or twin",
    3: "charged once",
    4: "quantities conserved",
    5: "no step done twice",
    6: "right order",
    7: "each undo matches a do",
    8: "fenced",
    9: "counted right",
    10: "stable keys",
    11: "status messages match",
    12: "nothing left behind",
    13: "operations match their items",
    14: "every failure has its cause",
}


def clock_repeated(column: str) -> str:
    """Return the condition that the database's clock showed the time in `column` twice.

    The order of events at such a time is unknown.
    """
    return f"""EXISTS (SELECT FROM orchestration_clockjump j WHERE j.seconds < 0
        AND {column} BETWEEN j.at - interval '1 minute'
        AND j.at + interval '1 minute' - j.seconds * interval '1 second')"""


def ended_after(ended: str, sent: str, ids: str) -> str:
    """Return the condition that something had not ended, at the time in `ended`, when another was sent.

    `ids` is the condition that the ids of their attempts say so: they rise in the order in which attempts
    end. Times alone say so only if they differ by more than a step back of the clock that is not noted.
    """
    return f"""({ended} > {sent} AND NOT {clock_repeated(ended)}
        AND ({ended} > {sent} + interval '{conf.CLOCK_BACK_S} seconds' OR {ids}))"""


# The condition that attempt `f` ended before step `p` was done, or passed over, so that it was sent before.
ENDED_LATER = """f.id < (SELECT max(d.id) FROM audit_attempt d
    WHERE d.step_id = p.id AND d.outcome = CASE p.state WHEN 'skipped' THEN 'rejected' ELSE 'done' END)"""
