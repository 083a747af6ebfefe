"""Invariant 12: no task keeps locks, messages or alerts of its past."""

from ....applications.audits import Check, Scope
from ....models.request import KEPT_FOR_S, UNKNOWN_ID, waits_for_person
from ..past import is_past

ENDED = "coalesce(b.done_at, b.refused_at, 'infinity')"  # of a request
CLOSED_LONG_AGO = is_past("w.closed_at", "undelivered")  # of a submission
NOT_LONG_CLOSED = f"NOT coalesce({CLOSED_LONG_AGO}, false)"

LEFT_BEHIND = (
    Check(
        invariant=12,
        remedy="Have a developer clear what it holds; look for what wrote past the guards.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' is ' || s.state || ', but still has '
            || concat_ws(', ', CASE WHEN s.locked_by IS NOT NULL THEN 'a lock' END,
                CASE WHEN s.complete_by IS NOT NULL THEN 'a deadline' END,
                CASE WHEN s.run_after IS NOT NULL THEN 'a time to run' END,
                CASE WHEN s.held_by_id IS NOT NULL THEN 'a hold' END,
                CASE WHEN s.doubtful AND s.state <> 'cancelled' THEN 'a doubt' END)
        FROM audit_step s
        WHERE (s.state NOT IN ('processing') AND num_nonnulls(s.locked_by, s.complete_by) > 0)
           OR (s.state NOT IN ('pending') AND num_nonnulls(s.run_after, s.held_by_id) > 0)
           OR (s.state IN ('processed', 'skipped') AND s.doubtful)
        """,
    ),
    Check(
        invariant=12,
        remedy="Have a developer remove the row: nothing awaits it; look for what wrote past the guards.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' is ' || s.state || ', but its wait is still there'
        FROM audit_step s JOIN orchestration_wait w ON w.step_id = s.id
        WHERE s.state <> 'awaiting' AND w.awaited_at IS NOT NULL
        """,
    ),
    Check(
        invariant=12,
        remedy="Report the result again by `complete`, with the workflow, reference and step.",
        # by request_kept; of the hour, some seconds are between the acceptance and its look for reports
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' was accepted as ' || e.external_id
            || ', and what ' || e.agent || ' has reported of that was not applied'
        FROM audit_step s JOIN orchestration_externalid e ON e.step_id = s.id
        JOIN orchestration_taskrequest q ON q.refusal = '{UNKNOWN_ID}'
            AND q.agent = e.agent AND q.external_id = e.external_id
        WHERE q.created_at > e.accepted_at - ({KEPT_FOR_S} - 60) * interval '1 second'
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=12,
        remedy="Have a developer see how one report could be applied twice.",
        # answers to looks, and what children come to, are named within their attempt
        query="""
        SELECT s.reference, 'step ' || s.name || ' got the report ' || (e.detail->>'report')
            || ' ' || count(*) || ' times'
        FROM audit_step s JOIN audit_event e ON e.step_id = s.id
        WHERE e.kind = 'reported'
        GROUP BY s.reference, s.name, s.id, e.detail->>'report', CASE
            WHEN e.detail->>'report' LIKE 'look %%' OR e.detail->>'report' = 'children' THEN e.attempt END
        HAVING count(*) > 1
        """,
    ),
    Check(
        invariant=12,
        remedy="Give the task another priority, and then this one again: that holds for all its steps.",
        query="""
        SELECT reference, 'step ' || name || ' has the priority ' || priority
            || ', but its task has ' || task_priority
        FROM audit_step WHERE priority <> task_priority
          AND state IN ('waiting', 'pending', 'processing', 'awaiting', 'error')
        """,
    ),
    Check(
        invariant=12,
        remedy="Have a developer set its end to that of its last step, or clear it.",
        query="""
        SELECT t.reference, 'is ' || t.state
            || CASE WHEN t.ended_at IS NULL THEN ', but has no end' ELSE ', but has an end' END
        FROM audit_task t
        WHERE (t.state IN ('processed', 'undone')) <> (t.ended_at IS NOT NULL)
        """,
    ),
    Check(
        invariant=12,
        remedy="Check that a worker of that application's status queue runs, and read its log.",
        query=f"""
        SELECT t.reference, 'status message ' || m.number || ' (' || m.kind
            || ') has not been delivered since ' || to_char(m.created_at, 'YYYY-MM-DD HH24:MI:SS')
        FROM orchestration_statusmessage m JOIN audit_task t ON t.id = m.task_id
        LEFT JOIN orchestration_application p ON p.name = m.reply_to
        WHERE m.refused_at IS NULL
          AND {is_past("m.created_at", "undelivered")}
          -- an external receiver may be away: then its alert is open
          AND (coalesce(p.delivery, 'consumer') = 'consumer' OR NOT EXISTS (
            SELECT 1 FROM orchestration_alert a WHERE a.closed_at IS NULL
              AND a.fingerprint = 'system/status_undelivered/' || m.reply_to))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="Retry or close it (manage.py deadletters): its alert was closed without a decision.",
        query="""
        SELECT r.reference, r.what || ' was refused at '
            || to_char(r.refused_at, 'YYYY-MM-DD HH24:MI:SS') || ', and no alert is open'
        FROM (
            SELECT reference, 'its submission to ' || workflow AS what, refused_at, closed_at,
                'submission/' || workflow AS fingerprint FROM orchestration_submission
            UNION ALL
            SELECT reference, 'its request to ' || what, refused_at, closed_at,
                'request/' || workflow FROM orchestration_taskrequest
            UNION ALL
            SELECT t.reference, 'status message ' || m.number, m.refused_at, m.closed_at,
                'status/' || m.reply_to
            FROM orchestration_statusmessage m JOIN orchestration_task t ON t.id = m.task_id
            WHERE m.refused_at IS NOT NULL AND m.closed_at IS NULL) r
        WHERE r.refused_at IS NOT NULL AND r.closed_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM orchestration_alert a
            WHERE a.closed_at IS NULL AND a.fingerprint = r.fingerprint)
        """,
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="Check that a worker of the queue submission runs, and read its log.",
        query=f"""
        SELECT s.reference, 'its submission to ' || s.workflow || ' could be taken since '
            || to_char(coalesce(s.retry_at, s.created_at), 'YYYY-MM-DD HH24:MI:SS')
        FROM orchestration_submission s
        WHERE s.refused_at IS NULL
          AND {is_past("coalesce(s.retry_at, s.created_at)", "undelivered")}
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="Check that a worker of the queue submission runs, and read its log.",
        # a request waits for its task's submission, also one that is set aside, and for earlier requests,
        # so it counts only once these have long ended
        query=f"""
        SELECT r.reference, 'its request to ' || r.what || ' could be carried out since '
            || to_char(coalesce(r.retry_at, r.created_at), 'YYYY-MM-DD HH24:MI:SS')
        FROM orchestration_taskrequest r
        WHERE r.done_at IS NULL AND r.refused_at IS NULL
          AND {is_past("coalesce(r.retry_at, r.created_at)", "undelivered")}
          AND NOT EXISTS (SELECT 1 FROM orchestration_taskrequest b
            WHERE b.workflow = r.workflow AND b.reference = r.reference AND b.id < r.id
              AND NOT {is_past(ENDED, "undelivered")})
          AND NOT EXISTS (SELECT 1 FROM orchestration_submission s
            WHERE s.workflow = r.workflow AND s.reference = r.reference AND s.refused_at IS NULL)
          AND NOT {waits_for_person("r", NOT_LONG_CLOSED)}
          AND NOT EXISTS (SELECT 1 FROM orchestration_task t
            WHERE t.workflow = r.workflow AND t.reference = r.reference
              AND NOT {is_past("t.created_at", "undelivered")})
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=12,
        remedy="Resubmit or undo it now; then look for what closed its alert.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' is in error, but '
            || CASE WHEN a.id IS NULL THEN 'has no alert' ELSE 'its alert is closed' END
        FROM audit_step s LEFT JOIN orchestration_alert a ON a.id = s.alert_id
        WHERE s.state = 'error' AND (a.id IS NULL OR a.closed_at IS NOT NULL)
        """,
    ),
    Check(
        invariant=12,
        remedy="Have a developer set the task's state to what its steps say.",
        query="""
        SELECT t.reference, 'is in error, but none of its steps is, so it has no alert'
        FROM audit_task t WHERE t.state = 'error' AND t.steps > 0 AND NOT t.failed
        """,
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="Have a developer close it: no step in error refers to it.",
        query="""
        SELECT a.fingerprint, 'its alert is open, but no step in error refers to it'
        FROM orchestration_alert a
        WHERE a.closed_at IS NULL
          AND (a.fingerprint LIKE 'step/%%' OR a.fingerprint LIKE 'undo/%%')
          AND NOT EXISTS (SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id
              AND s.process_state = 'error')
        """,
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="Have a developer close all of them but the first.",
        query="""
        SELECT fingerprint, count(*) || ' alerts are open for one cause'
        FROM orchestration_alert WHERE closed_at IS NULL
        GROUP BY fingerprint HAVING count(*) > 1
        """,
    ),
    Check(
        invariant=12,
        scope=Scope.ALL,
        remedy="See that the supervisors run, and what sending to the channel says.",
        query=f"""
        SELECT a.fingerprint, 'a notification to ' || c.name || ' was due at '
            || to_char(n.send_after, 'YYYY-MM-DD HH24:MI:SS') || ' and is not sent'
        FROM orchestration_notification n JOIN orchestration_alert a ON a.id = n.alert_id
        JOIN orchestration_notificationchannel c ON c.id = n.channel_id
        WHERE n.sent_at IS NULL AND n.given_up_at IS NULL AND c.active
          AND {is_past("n.send_after", "undelivered")}
        """,  # noqa: S608 - no input in it
    ),
)
