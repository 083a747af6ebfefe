"""The thresholds that admins adjust, and the gates they open and shut.

A bound stands once, as a constraint with its sentence: the form shows it, the database holds it.
"""

from django.db import models
from django.db.models import F, Q
from simple_history.models import HistoricalRecords


class Policy(models.Model):
    """How one agent is called, and what happens when that fails. All times are in seconds."""

    agent = models.CharField(max_length=60, primary_key=True, editable=False)
    time_allowed = models.FloatField(
        default=10.0, help_text="Seconds an attempt may take, from its dispatch to its reply."
    )
    call_timeout = models.FloatField(
        default=3.0, help_text="Seconds one call to the remote service may take."
    )
    tries = models.PositiveSmallIntegerField(
        default=2, help_text="Calls an agent makes in one attempt, before it reports a failure."
    )
    failure_threshold = models.PositiveSmallIntegerField(
        default=5, help_text="Failed attempts after which the step is an error, and an alert."
    )
    backoff = models.FloatField(
        default=1.0, help_text="Seconds before the second attempt; doubles with each failure."
    )
    backoff_cap = models.FloatField(
        default=60.0, help_text="Seconds that a wait between two attempts never exceeds."
    )
    window = models.PositiveIntegerField(
        default=100, help_text="Requests that may be in flight to this agent at once."
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords()

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(call_timeout__gt=0, call_timeout__lte=600),
                name="policy_call_timeout",
                violation_error_message="One call must be allowed more than 0 and at most 600 seconds.",
            ),
            models.CheckConstraint(
                condition=Q(time_allowed__gte=F("call_timeout")) & Q(time_allowed__lte=86400),
                name="policy_time_allowed",
                violation_error_message=(
                    "An attempt must be allowed at least as long as one call may take "
                    "(time allowed ≥ call timeout), and at most a day: otherwise every slow call "
                    "would be cut off and counted as a failure."
                ),
            ),
            models.CheckConstraint(
                condition=Q(tries__gte=1, tries__lte=10),
                name="policy_tries",
                violation_error_message="An agent makes between 1 and 10 calls in one attempt.",
            ),
            models.CheckConstraint(
                condition=Q(failure_threshold__gte=1, failure_threshold__lte=1000),
                name="policy_failure_threshold",
                violation_error_message=(
                    "The failure threshold must be between 1 and 1000: with 0, a step would be "
                    "an error before it was tried."
                ),
            ),
            models.CheckConstraint(
                condition=Q(backoff__gt=0, backoff_cap__gte=F("backoff"), backoff_cap__lte=86400),
                name="policy_backoff",
                violation_error_message=(
                    "The wait before a retry must be more than 0 seconds, and its cap at least as "
                    "long and at most a day."
                ),
            ),
            models.CheckConstraint(
                condition=Q(window__gte=1, window__lte=10_000),
                name="policy_window",
                violation_error_message=(
                    "The window must be between 1 and 10,000 requests; to stop an agent, "
                    "close its gate instead."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.agent


class Gate(models.Model):
    """The live state of one agent's gate. Its row is locked by whoever dispatches to the agent."""

    agent = models.CharField(max_length=60, primary_key=True, editable=False)
    open = models.BooleanField(
        default=True, help_text="While shut, this agent's steps wait; nothing fails."
    )
    reason = models.CharField(
        max_length=200, blank=True, help_text="Why it is shut, for those who wonder."
    )
    history = HistoricalRecords()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(open=True) | ~Q(reason=""),
                name="gate_shut_with_reason",
                violation_error_message="Say why the gate is shut: others will wonder.",
            ),
        ]

    def __str__(self) -> str:
        return self.agent


class SupervisorPolicy(models.Model):
    """How the supervisors work: one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    interval = models.FloatField(
        default=1.0, help_text="Seconds between two sweeps of the leading supervisor (P14)."
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords()

    class Meta:
        verbose_name = verbose_name_plural = "supervisor policy"
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="supervisor_policy_single"),
            models.CheckConstraint(
                condition=Q(interval__gte=0.2, interval__lte=60),
                name="supervisor_policy_interval",
                violation_error_message=(
                    "The supervisor's interval must be between 0.2 and 60 seconds: more often "
                    "is only overhead, more rarely lets failed steps lie."
                ),
            ),
        ]

    def __str__(self) -> str:
        return "Supervisor"
