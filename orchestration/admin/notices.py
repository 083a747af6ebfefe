"""Who is told of alerts: channels to set up, and what became of each notice."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from .. import webhooks
from ..models import Notice, NoticeChannel
from ..models.notice import ChannelKind
from .records import ReadOnlyAdmin, RowsAdmin

SHORTEST_SECRET = 24  # characters


class SigningForm(forms.ModelForm):  # type: ignore[type-arg] # generic for the type checker only
    """A receiver of webhooks; its secrets can be set here, and never read."""

    new_secret = forms.CharField(
        required=False,
        strip=True,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="What webhooks are signed with, such as the output of `openssl rand -base64 32`. "
        "Empty: as before. While both are kept, webhooks are signed with the new and the old one.",
    )
    forget_old_secret = forms.BooleanField(
        required=False, help_text="The receiver knows the new secret: sign with that alone."
    )

    def check_receiver(self, field: str, address: str) -> None:
        """Say what is wrong with where webhooks would go, and whether they can be signed."""
        try:
            webhooks.allowed(address)
        except webhooks.Refused as error:
            self.add_error(field, str(error))
        secret = self.cleaned_data.get("new_secret", "")
        if not secret and not self.instance.secret:
            self.add_error("new_secret", "A webhook needs a secret to be signed with.")
        elif secret and len(secret) < SHORTEST_SECRET:
            self.add_error("new_secret", f"A secret has at least {SHORTEST_SECRET} characters.")

    def _post_clean(self) -> None:
        """Take the secrets over, before the row is checked as a whole; the present one gets old."""
        receiver = self.instance
        if secret := self.cleaned_data.get("new_secret"):
            receiver.old_secret, receiver.secret = receiver.secret, secret
        if self.cleaned_data.get("forget_old_secret"):
            receiver.old_secret = ""
        super()._post_clean()  # type: ignore[misc] # Django's own hook, which its stubs leave out


class ChannelForm(SigningForm):
    """A channel by which people are told of alerts."""

    class Meta:
        model = NoticeChannel
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


@admin.register(NoticeChannel)
class NoticeChannelAdmin(RowsAdmin):
    """Somebody who is told of alerts."""

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
    def signed(self, channel: NoticeChannel) -> str:
        """Return which secrets there are."""
        if channel.kind != ChannelKind.WEBHOOK:
            return "-"
        return "new and old secret" if channel.old_secret else "one secret"


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
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
