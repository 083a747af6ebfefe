"""Invariant 14: every failure has an incident, and the counts of each incident are right."""

from ....applications.audits import LATELY, Check, Scope

RECOUNT = (
    "Have a developer set its counters to what its hits and steps say; look for what wrote past."
)

INCIDENTS = (
    Check(
        invariant=14,
        remedy="Have a developer give it the incident of its cause; look for what wrote past the counts.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') is in error, but '
            || CASE WHEN s.incident_id IS NULL THEN 'has no incident'
                ELSE 'its incident does not know of it' END
        FROM audit_step s
        WHERE s.state = 'error' AND NOT EXISTS (
            SELECT 1 FROM orchestration_incidenthit h
            WHERE h.step_id = s.id AND h.incident_id = s.incident_id)
        """,
    ),
    Check(
        invariant=14,
        scope=Scope.ALL,
        remedy=RECOUNT,
        query=f"""
        WITH seen AS MATERIALIZED (
            SELECT * FROM orchestration_incident i WHERE {LATELY.format("i.last_seen")} OR open_tasks <> 0
        ), tallies AS (
            SELECT incident_id, sum(failures) AS failures, sum(tasks) AS tasks,
                sum(open_tasks) AS open_tasks
            FROM orchestration_incidenttally GROUP BY incident_id
        ), hits AS (
            SELECT incident_id, sum(failures) AS failures, count(*) AS tasks
            FROM orchestration_incidenthit WHERE incident_id IN (SELECT id FROM seen)
            GROUP BY incident_id
        ), failed AS (
            SELECT incident_id, count(*) AS open_tasks FROM orchestration_step
            WHERE process_state = 'error' AND incident_id IS NOT NULL GROUP BY incident_id
        ), counted AS (
            SELECT i.fingerprint, i.failures + coalesce(t.failures, 0) AS failures,
                i.tasks + coalesce(t.tasks, 0) AS tasks,
                i.open_tasks + coalesce(t.open_tasks, 0) AS open_tasks,
                coalesce(h.failures, 0) + i.removed_failures AS all_failures,
                coalesce(h.tasks, 0) + i.removed_tasks AS all_tasks,
                coalesce(f.open_tasks, 0) AS all_open_tasks
            FROM seen i LEFT JOIN tallies t ON t.incident_id = i.id
            LEFT JOIN hits h ON h.incident_id = i.id LEFT JOIN failed f ON f.incident_id = i.id
        )
        SELECT fingerprint, 'counts ' || failures || ' failures, ' || tasks || ' tasks hit and '
            || open_tasks || ' in error, but there are ' || all_failures || ', ' || all_tasks
            || ' and ' || all_open_tasks
        FROM counted
        WHERE (failures, tasks, open_tasks) <> (all_failures, all_tasks, all_open_tasks)
        """,  # noqa: S608 - a condition of our own
    ),
    Check(
        invariant=14,
        scope=Scope.ALL,
        remedy=RECOUNT,
        query="""
        WITH kept AS (
            SELECT id, currency, sum(value) AS value FROM (
                SELECT i.id, v.key AS currency, v.value::bigint AS value
                FROM orchestration_incident i, jsonb_each_text(i.at_risk) v
                UNION ALL SELECT incident_id, currency, value FROM orchestration_incidenttally
                WHERE currency <> '') AS one GROUP BY id, currency
        ), stands AS (
            SELECT s.incident_id AS id, t.currency, sum(t.value) AS value
            FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
            WHERE s.process_state = 'error' AND s.incident_id IS NOT NULL AND t.currency <> ''
            GROUP BY s.incident_id, t.currency
        )
        SELECT i.fingerprint, 'puts ' || coalesce(k.value, 0) || ' ' || currency
            || ' at risk, but it is ' || coalesce(n.value, 0)
        FROM kept k FULL JOIN stands n USING (id, currency)
        JOIN orchestration_incident i USING (id)
        WHERE coalesce(k.value, 0) <> coalesce(n.value, 0)
        """,
    ),
    Check(
        invariant=14,
        remedy="Look for what counts a failure twice, and set its hits to what its history says.",
        query="""
        SELECT s.reference, 'step ' || s.name || ' (' || s.direction || ') is counted to incidents '
            || h.failures || ' times, but failed ' || coalesce(a.failures, 0) + coalesce(e.others, 0)
            || ' times'
        FROM audit_step s
        JOIN LATERAL (SELECT sum(failures) AS failures FROM orchestration_incidenthit
              WHERE step_id = s.id HAVING count(*) > 0) h ON true
        LEFT JOIN (SELECT step_id, count(*) AS failures FROM audit_attempt
              WHERE outcome IN ('transient', 'unknown', 'expired', 'rejected') GROUP BY step_id) a
            ON a.step_id = s.id
        -- errors without a failed attempt, and reported refusals: of these many are errors, too
        LEFT JOIN (SELECT step_id, greatest(count(*) FILTER (WHERE kind = 'error'),
                count(*) FILTER (WHERE kind = 'reported')) AS others
            FROM audit_event v
            WHERE kind = 'reported' AND reason <> 'done' OR kind = 'error' AND NOT EXISTS (
                SELECT FROM audit_attempt f WHERE f.step_id = v.step_id AND f.number = v.attempt
                    AND f.outcome IN ('transient', 'unknown', 'expired', 'rejected'))
            GROUP BY step_id) e ON e.step_id = s.id
        WHERE h.failures > coalesce(a.failures, 0) + coalesce(e.others, 0)
        """,
    ),
)
