"""How alerts reach people: channels, and an outbox of notifications."""

from django.db import models

from .. import conf
from ..database.lane import Lane
from .alert import Alert, Severity
from .fields import DatabaseNow, one_of, state_field

NOTIFICATIONS = Lane(
    name="notification",
    model="Notification",
    due_at="send_after",
    error="error",
    refused_at="given_up_at",
    done_at="sent_at",
    group="channel_id",
    label="kind",
    about="'', ''",
    leased=True,
    wait_s=conf.NOTIFICATION_WAIT_S,
    wait_cap_s=conf.NOTIFICATION_WAIT_CAP_S,
    max_age_s=conf.NOTIFICATION_MAX_AGE_S,
)


class ChannelKind(models.TextChoices):
    """By which way a notification goes."""

    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Signed webhook (Slack-compatible)"


class NotificationChannel(models.Model):
    """A receiver of alerts from a severity up: an e-mail address or a URL."""

    name = models.CharField(max_length=60, unique=True)
    kind = state_field(ChannelKind)
    address = models.CharField(max_length=500, help_text="An e-mail address, or an https URL.")
    severity = state_field(
        Severity, default=Severity.WARNING, help_text="The lowest severity that it receives."
    )
    secret = models.CharField(
        max_length=200, blank=True, help_text="The secret that signs webhooks (HMAC-SHA256)."
    )
    old_secret = models.CharField(
        max_length=200, blank=True, help_text="The former secret, while receivers change over."
    )
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [one_of("kind", ChannelKind, "channel_kind_known")]

    def __str__(self) -> str:
        return self.name


class NotificationKind(models.TextChoices):
    """What a notification says of its alert."""

    OPENED = "opened", "Opened"
    CLOSED = "closed", "Closed"


class Notification(models.Model):
    """One message about one alert to one channel: written with the alert, sent until it arrives."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notifications")
    channel = models.ForeignKey(NotificationChannel, models.CASCADE, related_name="notifications")
    kind = state_field(NotificationKind)
    created_at = models.DateTimeField(db_default=DatabaseNow())
    send_after = models.DateTimeField(db_default=DatabaseNow())
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    error = models.TextField(blank=True, db_default="", help_text="Why the last try failed.")
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # one message for each cause and channel, however often it is repeated
            models.UniqueConstraint(fields=["alert", "channel", "kind"], name="notification_once"),
        ]
        indexes = [
            # the outbox: what is still to be sent, by when
            models.Index(
                fields=["send_after"],
                name="notification_outbox",
                condition=NOTIFICATIONS.open,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.alert} to {self.channel}"
