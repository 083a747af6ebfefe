"""The thresholds that admins adjust.

A bound stands once, as a constraint with its sentence: the form shows it, the database holds it.
"""

from django.db import models
from django.db.models import F, Q
from simple_history.models import HistoricalRecords

from ..decisions.fairness import LONGEST_KEY
from ..states import OnRejection, PastThreshold
from .fields import one_of, state_field


def bounds_of_steps(table: str) -> list[models.CheckConstraint]:
    """Return the bounds of the thresholds that a step may have values of its own for.

    `table` begins their names. An empty value is within all bounds.
    """
    return [
        models.CheckConstraint(
            condition=Q(failure_threshold__gte=1, failure_threshold__lte=1000),
            name=f"{table}_failure_threshold",
            violation_error_message=(
                "The failure threshold must be between 1 and 1000: with 0, a step would be "
                "an error before it was tried."
            ),
        ),
        one_of("past_threshold", PastThreshold, f"{table}_past_threshold"),
        one_of("on_rejection", OnRejection, f"{table}_on_rejection"),
        models.CheckConstraint(
            condition=Q(resolve_within__gt=0, resolve_within__lte=2_592_000),
            name=f"{table}_resolve_within",
            violation_error_message=(
                "A rejected step must wait more than 0 seconds, and at most 30 days, to be mended."
            ),
        ),
        models.CheckConstraint(
            condition=Q(
                extended_wait__gt=0, extended_wait__lte=604_800, max_extended_waits__lte=1000
            ),
            name=f"{table}_extended_wait",
            violation_error_message=(
                "The extended wait must be more than 0 seconds and at most a week, and be "
                "taken at most 1000 times."
            ),
        ),
        models.CheckConstraint(
            condition=Q(undo_threshold__gte=F("failure_threshold"), undo_threshold__lte=10_000),
            name=f"{table}_undo_threshold",
            violation_error_message=(
                "An undo must be tried at least as often as what it undoes "
                "(undo threshold ≥ failure threshold), and at most 10,000 times."
            ),
        ),
    ]


class Policy(models.Model):
    """How one agent is called, and what happens when that fails. All times are in seconds."""

    agent = models.CharField(max_length=60, primary_key=True, editable=False)
    time_allowed = models.FloatField(
        default=10.0, help_text="Seconds from the dispatch of an attempt to its reply."
    )
    call_timeout = models.FloatField(
        default=3.0, help_text="Timeout of one call to the remote service, in seconds."
    )
    tries = models.PositiveSmallIntegerField(
        default=2, help_text="Calls per attempt before the agent reports a failure."
    )
    failure_threshold = models.PositiveSmallIntegerField(
        default=5,
        help_text="Failed attempts after which the step is in error and an alert is raised.",
    )
    backoff = models.FloatField(
        default=1.0, help_text="Seconds before the second attempt; doubles with each failure."
    )
    backoff_cap = models.FloatField(
        default=60.0, help_text="Longest wait between two attempts, in seconds."
    )
    past_threshold = state_field(
        PastThreshold,
        default=PastThreshold.ERROR,
        help_text="What happens when the threshold is reached.",
    )
    extended_wait = models.FloatField(
        default=600.0, help_text="Length of the extended wait, in seconds."
    )
    max_extended_waits = models.PositiveSmallIntegerField(
        default=3, help_text="Number of extended waits before the step is in error."
    )
    on_rejection = state_field(
        OnRejection,
        default=OnRejection.ERROR,
        help_text="What happens when the service rejects the request.",
    )
    resolve_within = models.FloatField(
        default=1800.0,
        db_default=1800.0,
        help_text="Seconds that a rejected step waits for a fix before its task is undone.",
    )
    undo_threshold = models.PositiveSmallIntegerField(
        default=20, help_text="Failed attempts after which an undo step is in error."
    )
    key_memory = models.FloatField(
        default=86400.0,
        null=True,
        blank=True,
        help_text="Seconds for which the service remembers an idempotency key; empty for no limit. "
        "After that, a call in doubt is not repeated automatically.",
    )
    window = models.PositiveIntegerField(
        default=100, help_text="Most requests in flight at the agent at a time."
    )
    rate = models.FloatField(
        null=True, blank=True, help_text="Most requests per second; empty for no limit."
    )
    aged_after = models.FloatField(
        default=60.0,
        db_default=60.0,
        help_text="Seconds after which a tenth of the window is reserved for the steps that have "
        "waited the longest, at any priority.",
    )
    breaker_calls = models.PositiveSmallIntegerField(
        default=20,
        help_text="Attempts that the circuit breaker counts: those of the last seconds, and older "
        "ones up to this number.",
    )
    breaker_failures = models.PositiveSmallIntegerField(
        default=5, help_text="Fewest failures that open the breaker."
    )
    breaker_share = models.FloatField(
        default=0.5, help_text="Share of failures (0 to 1) that opens the breaker."
    )
    breaker_pause = models.FloatField(
        default=5.0,
        help_text="Seconds from opening to the first probe; doubles with each failed probe.",
    )
    breaker_pause_cap = models.FloatField(
        default=15.0, help_text="Longest wait for a probe, in seconds."
    )
    retry_after_cap = models.FloatField(
        default=3600.0,
        db_default=3600.0,
        help_text="Longest pause that the service may ask for in one go (Retry-After), in seconds.",
    )
    updated_at = models.DateTimeField(auto_now=True)
    history = HistoricalRecords()

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            *bounds_of_steps("policy"),
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
                    "The breaker wants to see 1 to 200 attempts, and opens when at least that many "
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
            models.CheckConstraint(
                condition=Q(retry_after_cap__gt=0, retry_after_cap__lte=86400),
                name="policy_retry_after_cap",
                violation_error_message=(
                    "A service may ask for a pause of more than 0 seconds, and at most a day."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.agent


class FairnessWeight(models.Model):
    """How large a share one fairness key gets of what keys take turns at; without a row, 1."""

    key = models.CharField(max_length=LONGEST_KEY, unique=True)
    weight = models.FloatField(default=1.0, help_text="Turns per turn of a key whose weight is 1.")
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
