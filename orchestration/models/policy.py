"""The thresholds that admins adjust.

A bound stands once, as a constraint with its sentence: the form shows it, the database holds it.
"""

from django.db import models
from django.db.models import F, Q
from simple_history.models import HistoricalRecords

from ..fairness import LONGEST_KEY
from ..states import OnRejection, PastThreshold
from .fields import one_of, state_field


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
    past_threshold = state_field(
        PastThreshold, default=PastThreshold.ERROR, help_text="What follows past the threshold."
    )
    extended_wait = models.FloatField(
        default=600.0, help_text="Seconds of the extended wait, if that is what follows."
    )
    rounds = models.PositiveSmallIntegerField(
        default=3, help_text="Extended waits after which the step is an error all the same."
    )
    on_rejection = state_field(
        OnRejection, default=OnRejection.ERROR, help_text="What follows a definite rejection."
    )
    mend_within = models.FloatField(
        default=1800.0,
        db_default=1800.0,
        help_text="Seconds for which a rejected step waits to be mended, if that is what follows.",
    )
    undo_threshold = models.PositiveSmallIntegerField(
        default=20, help_text="Failed attempts after which an undo step is an error."
    )
    key_memory = models.FloatField(
        default=86400.0,
        null=True,
        blank=True,
        help_text="Seconds for which the service recognises a repeat by its key; empty: for ever. "
        "Past that, a call that may have been done is never repeated blindly.",
    )
    window = models.PositiveIntegerField(
        default=100, help_text="Requests that may be in flight to this agent at once."
    )
    rate = models.FloatField(
        null=True, blank=True, help_text="Requests per second at most; empty: no limit."
    )
    aged_after = models.FloatField(
        default=60.0,
        db_default=60.0,
        help_text="Seconds after which a tenth of the places is for the steps that have waited the "
        "longest, whatever their priority.",
    )
    breaker_calls = models.PositiveSmallIntegerField(
        default=20,
        help_text="The circuit breaker looks at the attempts of the last seconds, and further back as "
        "long as they are fewer than these.",
    )
    breaker_failures = models.PositiveSmallIntegerField(
        default=5, help_text="Failures among them below which it stays closed: all requests go."
    )
    breaker_share = models.FloatField(
        default=0.5, help_text="Share of failures among them (0 to 1) at which it opens: none go."
    )
    breaker_pause = models.FloatField(
        default=5.0,
        help_text="Seconds an open breaker waits for its first probe; doubles with each that fails.",
    )
    breaker_pause_cap = models.FloatField(
        default=15.0, help_text="Seconds that the wait for a probe never exceeds."
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
                    "hold it instead."
                ),
            ),
            one_of("past_threshold", PastThreshold, "policy_past_threshold"),
            one_of("on_rejection", OnRejection, "policy_on_rejection"),
            models.CheckConstraint(
                condition=Q(mend_within__gt=0, mend_within__lte=2_592_000),
                name="policy_mend_within",
                violation_error_message=(
                    "A rejected step must wait more than 0 seconds, and at most 30 days, to be "
                    "mended."
                ),
            ),
            models.CheckConstraint(
                condition=Q(extended_wait__gt=0, extended_wait__lte=604_800, rounds__lte=1000),
                name="policy_extended_wait",
                violation_error_message=(
                    "The extended wait must be more than 0 seconds and at most a week, and be "
                    "taken at most 1000 times."
                ),
            ),
            models.CheckConstraint(
                condition=Q(undo_threshold__gte=F("failure_threshold"), undo_threshold__lte=10_000),
                name="policy_undo_threshold",
                violation_error_message=(
                    "An undo must be tried at least as often as what it undoes "
                    "(undo threshold ≥ failure threshold), and at most 10,000 times."
                ),
            ),
            models.CheckConstraint(
                condition=Q(key_memory__isnull=True) | Q(key_memory__gte=F("time_allowed")),
                name="policy_key_memory",
                violation_error_message=(
                    "A service that forgets a key before one attempt is over (key memory < time "
                    "allowed) cannot be repeated safely at all."
                ),
            ),
            models.CheckConstraint(
                condition=Q(rate__isnull=True) | Q(rate__gt=0, rate__lte=100_000),
                name="policy_rate",
                violation_error_message=(
                    "The rate must be more than 0 requests per second; to stop an agent, hold it."
                ),
            ),
            models.CheckConstraint(
                condition=Q(aged_after__gte=0, aged_after__lte=604_800),
                name="policy_aged_after",
                violation_error_message=(
                    "Steps wait for long after 0 seconds at the least, and a week at the most."
                ),
            ),
            models.CheckConstraint(
                condition=Q(breaker_calls__gte=1, breaker_calls__lte=200)
                & Q(breaker_failures__gte=1, breaker_failures__lte=F("breaker_calls"))
                & Q(breaker_share__gt=0, breaker_share__lte=1),
                name="policy_breaker",
                violation_error_message=(
                    "The breaker wants to see 1 to 200 attempts, and opens when at least so many "
                    "failed (breaker failures, at most all) and at least that share (0 to 1)."
                ),
            ),
            models.CheckConstraint(
                condition=Q(breaker_pause__gt=0, breaker_pause_cap__lte=86400)
                & Q(breaker_pause_cap__gte=F("breaker_pause")),
                name="policy_breaker_pause",
                violation_error_message=(
                    "The pause before a probe must be more than 0 seconds, and its cap at least as "
                    "long and at most a day."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.agent


class FairnessWeight(models.Model):
    """How large a share one fairness key gets of what keys take turns at; without a row, 1."""

    key = models.CharField(max_length=LONGEST_KEY, unique=True)
    weight = models.FloatField(
        default=1.0, help_text="Turns that it gets for one of a key whose weight is 1."
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords()

    class Meta:
        ordering = ["key"]
        constraints = [
            models.CheckConstraint(
                condition=Q(weight__gte=0.01, weight__lte=100),
                name="fairness_weight",
                violation_error_message="A weight is between 0.01 and 100.",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class SupervisorPolicy(models.Model):
    """How the supervisors work: one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    interval = models.FloatField(
        default=1.0, help_text="Seconds between two sweeps of the leading supervisor (P14)."
    )
    oldest_waiting = models.FloatField(
        default=300.0, help_text="Seconds a step may wait for its claim before that is an alert."
    )
    undo_stuck = models.FloatField(
        default=900.0, help_text="Seconds an undo may take before that is an alert."
    )
    status_undelivered = models.FloatField(
        default=300.0, help_text="Seconds a status message may lie before that is an alert."
    )
    audit_every = models.FloatField(
        default=3600.0, help_text="Seconds between two audits; 0 for none."
    )
    approve_items = models.PositiveIntegerField(
        default=1000,
        db_default=1000,
        null=True,
        blank=True,
        help_text="Items above which a bulk operation needs a second person; empty: never.",
    )
    approve_sum = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Money above which it does, of any one currency, in minor units (cents); "
        "empty: never.",
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
            models.CheckConstraint(
                condition=Q(oldest_waiting__gt=0, undo_stuck__gt=0, status_undelivered__gt=0)
                & Q(audit_every__gte=0),
                name="supervisor_policy_limits",
                violation_error_message="Limits are more than 0 seconds.",
            ),
        ]

    def __str__(self) -> str:
        return "Supervisor"
