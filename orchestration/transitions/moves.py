"""The moves of a step, and the other changes that follow from a decision: what each of them writes.

`states.MOVES` says from which state to which a step may go; triggers refuse all others. A claim's own
move is in `claim`, as are those of `loading` and `priority` in theirs.
"""

from .held_time import AWAITED_SECONDS, HELD_SECONDS
from .step_update import StepUpdate

NO_REPLY = "no reply came before its deadline: the agent died, hung, or is slow"

# waiting → pending
RELEASED = StepUpdate(
    "process_state = 'pending', request = r.request, pending_since = clock_timestamp(), turn = r.turn",
    request="jsonb",
    turn="bigint",
)

# waiting, and stays that: all that it comes after has ended, and its time has not come
TIMED = StepUpdate(
    "pending_since = clock_timestamp(), held_seconds = s.held_seconds + r.seconds", seconds="float8"
)

# pending → processing, of a step that needs no agent
BEGUN = StepUpdate(
    f"""process_state = 'processing', locked_by = r.by, attempt = s.attempt + 1,
    dispatched_at = clock_timestamp(), complete_by = clock_timestamp(),
    held_seconds = held_seconds + {HELD_SECONDS}, outcome = '', error_code = '', error_message = ''""",
    by="text",
)

# processing → processed, awaiting, or processing until it is counted or cancelled. With the attempt's
# history: both parts see the step as it was before, so the row itself gives its dispatcher and the time of
# dispatch.
ENDED = StepUpdate(
    """locked_by = NULL,
    process_state = CASE r.outcome WHEN 'done' THEN 'processed' WHEN 'later' THEN 'awaiting'
        ELSE 'processing' END,
    complete_by = CASE WHEN r.outcome IN ('done', 'later') THEN NULL ELSE clock_timestamp() END,
    ended_at = clock_timestamp(),
    outcome = r.outcome,
    in_doubt = r.in_doubt,
    probing_outcome = s.probing_outcome AND r.outcome IN ('unknown', 'transient'),
    result = CASE WHEN r.outcome IN ('done', 'later') THEN r.result ELSE s.result END,
    loaded = CASE r.outcome WHEN 'done' THEN NULL ELSE s.loaded END,
    error_code = r.code, error_message = r.message, retry_after = r.retry_after,
    own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)""",
    also="AND s.locked_by IS NOT NULL",
    history="""
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, started_at, ended_at, outcome, tries, error_code, error_message)
    SELECT s.id, s.attempt, s.generation, s.locked_by, r.by, s.dispatched_at,
        to_timestamp(r.started), clock_timestamp(), r.outcome, r.tries, r.code, r.message
    FROM reply r JOIN orchestration_step s USING (id) WHERE s.locked_by IS NOT NULL""",
    outcome="text",
    result="jsonb",
    code="text",
    message="text",
    tries="int",
    started="float8",
    by="text",
    incident="bigint",
    in_doubt="bool",
    retry_after="float8",
    own_trouble="bool",
)

# processing until it is counted: an attempt that had no reply. It is in doubt from then on.
EXPIRED = StepUpdate(
    f"""locked_by = NULL, in_doubt = true, outcome = 'expired', error_code = 'expired',
    error_message = '{NO_REPLY}'""",
    also="AND s.locked_by IS NOT NULL",
    history=f"""
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, ended_at, outcome, tries, error_code, error_message)
    SELECT s.id, s.attempt, s.generation, s.locked_by, '', s.dispatched_at, clock_timestamp(), 'expired',
        0, 'expired', '{NO_REPLY}'
    FROM reply r JOIN orchestration_step s USING (id) WHERE s.locked_by IS NOT NULL""",  # noqa: S608 - a constant of our own
)

# processing → pending
RETRIED = StepUpdate(
    """process_state = 'pending', locked_by = NULL, complete_by = NULL,
    failure_count = r.failure_count, extended_waits = r.extended_waits, outcome = r.outcome,
    error_code = r.code, error_message = r.message, pending_since = clock_timestamp(),
    in_doubt = r.in_doubt AND NOT r.new_key, probing_outcome = s.probing_outcome OR r.probing_outcome,
    generation = s.generation + r.new_key::int,
    keyed_at = CASE WHEN r.new_key THEN NULL ELSE s.keyed_at END, isolated = r.isolated,
    run_after = clock_timestamp() + r.wait * interval '1 second', retry_after = NULL,
    failed_at = CASE WHEN r.outcome <> 'absent' THEN clock_timestamp() END, own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)""",
    failure_count="int",
    extended_waits="int",
    wait="float8",
    outcome="text",
    code="text",
    message="text",
    in_doubt="bool",
    new_key="bool",
    probing_outcome="bool",
    isolated="bool",
    incident="bigint",
    own_trouble="bool",
)

# processing → pending, of a rejection that a resubmit waits for: later, with jitter, under a new key
PATIENTLY_RETRIED = StepUpdate(
    """process_state = 'pending', complete_by = NULL,
    generation = s.generation + 1, keyed_at = NULL, pending_since = clock_timestamp(),
    failure_count = 0, extended_waits = 0, isolated = false, failed_at = NULL, own_trouble = false,
    run_after = clock_timestamp() + r.wait * (1 + random() / 10) * interval '1 second'""",
    wait="float8",
)

# The time of a wait that ends is its task's again.
WAITED = f"held_seconds = s.held_seconds + {AWAITED_SECONDS}"

# processing, awaiting, waiting or pending → error
FAILED = StepUpdate(
    f"""{WAITED}, process_state = 'error', locked_by = NULL, complete_by = NULL, run_after = NULL,
    ended_at = clock_timestamp(), error_code = r.code, error_message = r.message,
    alert_id = r.alert, incident_id = r.incident, failure_count = s.failure_count + r.failures,
    resolve_by = clock_timestamp() + r.resolve_within * interval '1 second'""",
    code="text",
    message="text",
    alert="bigint",
    incident="bigint",
    failures="int",
    resolve_within="float8",
)

# error → pending
RESUBMITTED = StepUpdate(
    """process_state = 'pending', failure_count = 0, extended_waits = 0, isolated = false, alert_id = NULL,
    ended_at = NULL, failed_at = NULL, own_trouble = false,
    generation = s.generation + r.new_key::int, in_doubt = s.in_doubt AND NOT r.new_key,
    keyed_at = CASE WHEN r.new_key THEN NULL ELSE s.keyed_at END, probing_outcome = r.probing_outcome,
    request = r.request, loads = r.loads, pending_since = clock_timestamp(), turn = r.turn,
    resolve_by = NULL,
    run_after = CASE WHEN r.wait > 0 THEN clock_timestamp() + r.wait * interval '1 second' END,
    patience = CASE WHEN r.patience > 0 THEN jsonb_build_object('code', s.error_code,
        'wait', r.wait, 'until', clock_timestamp() + r.patience * interval '1 second') END""",
    new_key="bool",
    probing_outcome="bool",
    request="jsonb",
    loads="jsonb",
    turn="bigint",
    wait="float8",
    patience="float8",
)

# error → processed
DONE_BY_HAND = StepUpdate(
    """process_state = 'processed', result = r.result, alert_id = NULL, resolve_by = NULL, in_doubt = false,
    probing_outcome = false, ended_at = clock_timestamp(), loaded = NULL, done_by = r.by""",
    result="jsonb",
    by="text",
)

# waiting or error → awaiting, of a step whose result a person or a signal brings
AWAITED = StepUpdate(
    """process_state = 'awaiting', request = r.request, pending_since = clock_timestamp(),
    ended_at = NULL, alert_id = NULL, resolve_by = NULL, failure_count = 0, error_code = '',
    error_message = ''""",
    request="jsonb",
)

# awaiting → processed, or awaiting until it is decided what follows a refusal
REPORTED = StepUpdate(
    f"""{WAITED}, process_state = CASE r.outcome WHEN 'done' THEN 'processed' ELSE 'awaiting' END,
    result = CASE r.outcome WHEN 'done' THEN r.result ELSE s.result END,
    outcome = r.outcome, error_code = r.code, error_message = r.message, in_doubt = r.in_doubt,
    ended_at = clock_timestamp(), loaded = NULL""",
    outcome="text",
    result="jsonb",
    code="text",
    message="text",
    in_doubt="bool",
)

# pending or awaiting, never sent, and stays that: the input of its task is another one
REBUILT = StepUpdate("request = r.request", also="AND s.attempt = 0", request="jsonb")

# awaiting, and stays that: its service says more of what it accepted
ACCEPTED = StepUpdate("result = r.result", result="jsonb")

# waiting, awaiting or processing → skipped
SKIPPED = StepUpdate(
    f"""{WAITED}, process_state = 'skipped', complete_by = NULL, ended_at = clock_timestamp(),
    loaded = NULL"""
)

# waiting, pending, processing, awaiting or error → cancelled
CANCELLED = StepUpdate(
    f"""{WAITED}, process_state = 'cancelled', locked_by = NULL, complete_by = NULL,
    run_after = NULL, held_by_id = NULL, alert_id = NULL, resolve_by = NULL, probing_outcome = false,
    ended_at = clock_timestamp(), loaded = NULL, incident_id = coalesce(r.incident, s.incident_id),
    in_doubt = s.in_doubt AND s.outcome <> 'later'""",
    incident="bigint",
)

# Of a task that is being undone, what may have been done is found out: error → pending, and so what was just
# `refused`, as the supervisor would count that as a failure; others stay.
SETTLED = StepUpdate(
    """probing_outcome = true, alert_id = NULL, run_after = NULL, resolve_by = NULL, turn = r.turn,
    isolated = s.isolated AND r.state <> 'error',
    failure_count = CASE r.state WHEN 'error' THEN 0 ELSE s.failure_count END,
    failed_at = CASE r.state WHEN 'error' THEN NULL ELSE s.failed_at END,
    own_trouble = s.own_trouble AND r.state <> 'error',
    extended_waits = CASE r.state WHEN 'error' THEN 0 ELSE s.extended_waits END,
    ended_at = CASE WHEN r.state = 'error' OR r.refused THEN NULL ELSE s.ended_at END,
    pending_since = CASE WHEN r.state = 'error' OR r.refused THEN clock_timestamp() ELSE s.pending_since END,
    complete_by = CASE WHEN NOT r.refused THEN s.complete_by END,
    process_state = CASE WHEN r.state = 'error' OR r.refused THEN 'pending' ELSE s.process_state END""",
    turn="bigint",
    refused="boolean",
)

# cancelled or waiting → pending: the undo step of an effect that showed late
REVIVED = StepUpdate(
    """process_state = 'pending', request = r.request, pending_since = clock_timestamp(), ended_at = NULL,
    turn = r.turn""",
    request="jsonb",
    turn="bigint",
)

# A step that goes on, whose effect has shown late.
DOUBTED = StepUpdate("in_doubt = true, outcome = r.outcome", outcome="text")

# In error: its task is to be undone now.
DUE_FOR_UNDO = StepUpdate("resolve_by = clock_timestamp()")

# In error: the undo of its task is requested, and it waits no longer for anything.
UNDO_REQUESTED = StepUpdate("resolve_by = NULL")

# pending, and stays that: its retry is due, or its hold has ended
DUE = StepUpdate(
    "run_after = NULL, pending_since = clock_timestamp(), turn = r.turn", turn="bigint"
)
UNPARKED = StepUpdate("held_by_id = NULL, turn = r.turn", turn="bigint")

# pending, and stays that: no code that runs here can compute it
POSTPONED = StepUpdate(
    """error_code = r.code, error_message = r.message,
    run_after = clock_timestamp() + r.wait * interval '1 second'""",
    code="text",
    message="text",
    wait="float8",
)
