"""Applications: the submitters of tasks, how each gets its status messages, and its tokens (P27)."""

from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from .fields import DatabaseNow, one_of, state_field


class Delivery(models.TextChoices):
    """How an application gets its status messages."""

    CONSUMER = "consumer", "Consumer inside this project"
    PULL = "pull", "Pull through the API"
    PUSH = "push", "Push as signed webhooks"


class Application(models.Model):
    """A submitter of tasks. Its name is that of its private response queue: `reply_to`.

    What is below `push_after` the engine keeps about a receiver that fails.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    name = models.CharField(
        max_length=60,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[a-z0-9][a-z0-9._-]*\Z",
                "Small letters, digits, and “.”, “_”, “-” between them.",
            )
        ],
        help_text="Also the name of its response queue; it cannot be changed.",
    )
    description = models.CharField(
        max_length=200, blank=True, help_text="What the application is, and its contact."
    )
    active = models.BooleanField(
        default=True, help_text="If not active, its tokens are refused and its messages are kept."
    )
    delivery = state_field(Delivery, default=Delivery.PULL)
    notify_steps = models.BooleanField(
        "notify of each step",
        default=False,
        help_text="Also notify of each step that ends. Applies to tasks submitted after the change.",
    )
    rate = models.PositiveIntegerField(
        default=600, help_text="Requests per minute, for all its tokens together."
    )
    max_priority = models.SmallIntegerField(
        "highest priority",
        default=0,
        db_default=0,
        help_text="The highest priority of tasks that it submits through the API.",
    )
    url = models.CharField(
        "URL", max_length=500, blank=True, help_text="The https URL of the webhook."
    )
    secret = models.CharField(
        max_length=200, blank=True, help_text="The secret that signs webhooks (HMAC-SHA256)."
    )
    old_secret = models.CharField(
        max_length=200,
        blank=True,
        help_text="The previous secret, until the receiver uses the new one.",
    )
    created_at = models.DateTimeField(db_default=DatabaseNow())

    push_after = models.DateTimeField(null=True, editable=False)
    push_failures = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Failures since the last delivered message.",
    )
    push_error = models.TextField(blank=True, db_default="", editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            one_of("delivery", Delivery, "application_delivery_known"),
            models.CheckConstraint(
                # nothing is sent nowhere, nor unsigned
                condition=~Q(delivery="push") | (~Q(url="") & ~Q(secret="")),
                name="application_push_has_url",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApplicationRole(models.Model):
    """A role of the database that speaks for an application, and for its workflows alone.

    `manage.py grant_application` writes it; the database's functions for applications read it. Without an
    application it is from before there were these rows, and may still name any.
    """

    role = models.CharField(max_length=63, primary_key=True, help_text="As it logs in.")
    application = models.CharField(max_length=60, blank=True)
    workflows = ArrayField(
        models.CharField(max_length=60),
        help_text="Of whose tasks it may submit and ask for changes.",
    )

    class Meta:
        ordering = ["role"]

    def __str__(self) -> str:
        return self.role


class ApplicationToken(models.Model):
    """What an application shows to be let in: only a hash is kept, so it is seen once."""

    application = models.ForeignKey(Application, models.CASCADE, related_name="tokens")
    label = models.CharField(
        max_length=60, help_text="A name for the token, such as “nightly job”."
    )
    start = models.CharField(
        max_length=12, editable=False, help_text="The first characters of the token."
    )
    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="SHA-256.")
    scopes = ArrayField(models.CharField(max_length=60), help_text="The permissions of the token.")
    created_at = models.DateTimeField(db_default=DatabaseNow())
    created_by = models.CharField(max_length=150, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Leave empty for no expiry.")
    used_at = models.DateTimeField(null=True, editable=False, help_text="Last use, to the minute.")
    revoked_at = models.DateTimeField(null=True, editable=False)
    revoked_by = models.CharField(max_length=150, blank=True, editable=False)

    class Meta:
        ordering = ["application", "-id"]

    def __str__(self) -> str:
        return f"{self.start}… of {self.application}"
