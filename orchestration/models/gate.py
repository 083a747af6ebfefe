"""The gates: what the engine knows of each agent's service now."""

from django.db import models
from django.db.models import Q

from ..states import GateState
from .fields import one_of, state_field


class Gate(models.Model):
    """The live state of one agent's gate. Its row is locked by the session that dispatches to the agent.

    The engine alone writes it; what people do is a `Hold`.
    """

    agent = models.CharField(max_length=60, primary_key=True, editable=False)
    state = state_field(
        GateState,
        default=GateState.CLOSED,
        db_default=GateState.CLOSED,
        help_text="State of the circuit breaker.",
    )
    since = models.DateTimeField(
        null=True, help_text="Only requests sent after this time count for the breaker."
    )
    slots = models.JSONField(
        default=list,
        db_default=[],
        help_text="Outcomes by the time of sending: [Unix time, good, bad, put off].",
    )
    answered_at = models.DateTimeField(
        null=True, help_text="When the last answered request was sent."
    )
    opened_at = models.DateTimeField(null=True, help_text="When the breaker last opened.")
    probe_at = models.DateTimeField(null=True, help_text="While open: when the next probe is due.")
    trips = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Times it opened since a probe last succeeded."
    )
    allowance = models.PositiveIntegerField(
        default=0, db_default=0, help_text="While recovering: requests that may be in flight."
    )
    paused_until = models.DateTimeField(
        null=True, help_text="The service asked for a pause until this time (Retry-After)."
    )
    tokens = models.FloatField(
        default=0.0, db_default=0.0, help_text="Requests that the rate allows at `tokens_at`."
    )
    tokens_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            one_of("state", GateState, "gate_state_known"),
            models.CheckConstraint(
                condition=Q(state="open", probe_at__isnull=False) | ~Q(state="open"),
                name="gate_open_until_probe",
            ),
        ]

    def __str__(self) -> str:
        return self.agent
