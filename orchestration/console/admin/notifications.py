"""Channels of notifications, to set up; and notifications, to look at."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from ...alerting import webhooks
from ...models import Notification, NotificationChannel
from ...models.notification import ChannelKind
from .concurrent_admin import ConcurrentAdmin
from .readonly import ReadOnlyAdmin

SHORTEST_SECRET = 24  # characters


class SigningForm(forms.ModelForm):  # type: ignore[type-arg] # generic for the type checker only
    """A receiver of webhooks; its secrets can be set here, and never read."""

    new_secret = forms.CharField(
        required=False,
        strip=True,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="What webhooks are signed with, such as the output of `openssl rand -base64 32`. "
        "Leave empty to keep the present secret. While both are kept, webhooks are signed with both.",
    )
    forget_old_secret = forms.BooleanField(
        required=False, help_text="The receiver uses the new secret: sign with it alone."
    )

    # who replaces them has to know the present ones (`ConcurrentForm`)
    watched = dict.fromkeys(("new_secret", "forget_old_secret"), ("secret", "old_secret"))

    def check_receiver(self, field: str, address: str) -> None:
        """Say what is wrong with where webhooks would go, and whether they can be signed."""
        try:
            webhooks.parse_address(address)
        except webhooks.ForbiddenAddress as error:
            self.add_error(field, str(error))
        secret = self.cleaned_data.get("new_secret", "")
        if not secret and not self.instance.secret:
            self.add_error("new_secret", "Enter a secret: webhooks are signed.")
        elif secret and len(secret) < SHORTEST_SECRET:
            self.add_error("new_secret", f"Enter at least {SHORTEST_SECRET} characters.")

    def _post_clean(self) -> None:
        """Take the secrets over, before the row is checked as a whole; the present one gets old."""
        receiver = self.instance
        if secret := self.cleaned_data.get("new_secret"):
            receiver.old_secret, receiver.secret = receiver.secret, secret
        if self.cleaned_data.get("forget_old_secret"):
            receiver.old_secret = ""
        super()._post_clean()  # type: ignore[misc] # Django's own hook, which its stubs leave out


class ChannelForm(SigningForm):
    """The form of a channel."""

    class Meta:
        model = NotificationChannel
        fields = ("name", "kind", "address", "severity", "active")

    def clean(self) -> dict[str, Any]:
        """Check the address by its kind, and that a webhook can be signed."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address, kind = cleaned.get("address"), cleaned.get("kind")
        if address and kind == ChannelKind.EMAIL:
            try:
                validate_email(address)
            except ValidationError as error:
                self.add_error("address", error)
        elif address and kind == ChannelKind.WEBHOOK:
            self.check_receiver("address", address)
        return cleaned


@admin.register(NotificationChannel)
class NotificationChannelAdmin(ConcurrentAdmin):
    """Channels that receive notifications of alerts."""

    form = ChannelForm
    actions = None
    list_display = ("name", "kind", "address", "severity", "active", "signed")
    list_filter = ("kind", "active")
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "kind", "address", "severity", "active")}),
        ("Signature of webhooks", {"fields": ("new_secret", "forget_old_secret")}),
    )

    @admin.display(description="signed with")
    def signed(self, channel: NotificationChannel) -> str:
        """Return which secrets there are."""
        if channel.kind != ChannelKind.WEBHOOK:
            return "-"
        return "new and old secret" if channel.old_secret else "one secret"


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    """Messages about alerts, and whether they arrived."""

    list_display = (
        "id",
        "alert",
        "channel",
        "kind",
        "created_at",
        "tries",
        "sent_at",
        "given_up_at",
        "error",
    )
    list_filter = (
        "kind",
        ("sent_at", admin.EmptyFieldListFilter),
        ("given_up_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("alert", "channel")
    ordering = ("-id",)
