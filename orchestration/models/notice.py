"""How alerts reach people: channels, and an outbox of notices."""

from django.db import models
from django.db.models import Q

from .alert import Alert, Severity
from .fields import DatabaseNow, one_of, state_field


class ChannelKind(models.TextChoices):
    """By which way a notice goes."""

    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Signed webhook (Slack-compatible)"


class NoticeChannel(models.Model):
    """Somebody who is told about alerts: an address or a URL, from a severity up."""

    name = models.CharField(max_length=60, unique=True)
    kind = state_field(ChannelKind)
    address = models.CharField(max_length=500, help_text="An e-mail address, or an https URL.")
    severity = state_field(
        Severity, default=Severity.WARNING, help_text="The least severity it is told about."
    )
    secret = models.CharField(
        max_length=200, blank=True, help_text="What webhooks are signed with (HMAC-SHA256)."
    )
    old_secret = models.CharField(
        max_length=200, blank=True, help_text="The former secret, while receivers change over."
    )
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [one_of("kind", ChannelKind, "channel_kind_known")]

    def __str__(self) -> str:
        return self.name


class NoticeKind(models.TextChoices):
    """What a notice says of its alert."""

    OPENED = "opened", "Opened"
    CLOSED = "closed", "Closed"


class Notice(models.Model):
    """One message about one alert to one channel: written with the alert, sent until it arrives."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notices")
    channel = models.ForeignKey(NoticeChannel, models.CASCADE, related_name="notices")
    kind = state_field(NoticeKind)
    created_at = models.DateTimeField(db_default=DatabaseNow())
    send_after = models.DateTimeField(db_default=DatabaseNow())
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    error = models.TextField(blank=True, db_default="", help_text="Why the last try failed.")
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # one cause, one message a channel, whatever is repeated
            models.UniqueConstraint(fields=["alert", "channel", "kind"], name="notice_once"),
        ]
        indexes = [
            # the outbox: what is still to be sent, by when
            models.Index(
                fields=["send_after"],
                name="notice_outbox",
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.alert} to {self.channel}"
