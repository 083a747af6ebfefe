"""The indexes of steps, each with the query that it is for."""

from django.db import models
from django.db.models import F, Q

INDEXES = [
    # the claim: pending, due now and not held, by agent, priority, turn; read in order, no
    # sort, and past those that wait to go alone
    models.Index(
        F("agent"),
        F("isolated"),
        F("priority").desc(),
        F("turn"),
        F("id"),
        name="step_turn",
        condition=Q(process_state="pending", run_after__isnull=True, held_by__isnull=True),
    ),
    # of these, one key's: its last turn, and how many are before another
    models.Index(
        fields=["agent", "priority", "fairness_key", "turn"],
        name="step_line",
        condition=Q(process_state="pending", run_after__isnull=True, held_by__isnull=True),
    ),
    # the oldest that may go, by agent: for the alert and the dashboard; those that wait for
    # a time, or are held, stand behind
    models.Index(
        F("agent"),
        models.Func("run_after", "held_by", function="num_nonnulls"),
        F("pending_since"),
        name="step_waiting",
        condition=Q(process_state="pending"),
    ),
    # the errors of an alert
    models.Index(fields=["alert"], name="step_alert", condition=Q(alert__isnull=False)),
    # what a hold keeps, to let it go
    models.Index(fields=["held_by"], name="step_held", condition=Q(held_by__isnull=False)),
    # in flight per agent, for the gate's window: at most the window's size of rows, from the
    # oldest on
    models.Index(
        fields=["agent", "dispatched_at"],
        name="step_in_flight",
        condition=Q(process_state="processing", locked_by__isnull=False),
    ),
    # the supervisor's "expired or failed"
    models.Index(
        fields=["complete_by"],
        name="step_expiry",
        condition=Q(process_state="processing"),
    ),
    # the supervisor's "retries whose time has come"
    models.Index(
        fields=["run_after"],
        name="step_retry",
        condition=Q(process_state="pending", run_after__isnull=False),
    ),
    # the dashboard's "retrying": not what waits for the time of its first attempt
    models.Index(
        fields=["run_after"],
        name="step_retrying",
        condition=Q(process_state="pending", run_after__isnull=False, attempt__gt=0),
    ),
    # the supervisor's "not mended in time"
    models.Index(
        fields=["resolve_by"], name="step_unmended", condition=Q(resolve_by__isnull=False)
    ),
    # the dashboard's search in what failed, in the order of its list, from the index alone
    models.Index(
        fields=["task"],
        include=["name", "agent", "error_code", "attempt", "resolve_by"],
        name="step_in_error",
        condition=Q(process_state="error"),
    ),
    # the dashboard's errors, newest first
    models.Index(fields=["-ended_at"], name="step_errors", condition=Q(process_state="error")),
    # who suffers from an incident, and who has yet to get over it
    models.Index(
        fields=["incident", "id"],
        name="step_of_incident",
        condition=Q(process_state="error", incident__isnull=False),
    ),
    # since when an incident has tasks in error: what failed again moves to the end
    models.Index(
        fields=["incident", "ended_at"],
        name="step_error_age",
        condition=Q(process_state="error", incident__isnull=False),
    ),
    models.Index(
        fields=["incident", "id"],
        name="step_retrying_by_incident",
        condition=Q(process_state__in=["pending", "processing"], incident__isnull=False),
    ),
    # what may be given up as its service is away, by its agent
    models.Index(
        fields=["agent", "pending_since"],
        name="step_away",
        condition=Q(process_state="pending", flow__has_key="away_after"),
    ),
    # what ends later, by the pattern's word Processing
    models.Index(fields=["id"], name="step_awaiting", condition=Q(process_state="awaiting")),
]
