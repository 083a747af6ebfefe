"""Applications and their tokens: set up by admins; a token is shown once, when it is made."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminDateWidget
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from ... import registry
from ...applications import tokens as application_tokens
from ...dead_letters import actions as dead_letters_actions
from ...dead_letters.actions import DeadLetterFilter, Kind
from ...models import Application, ApplicationToken
from ...models.application import Delivery
from ...models.fields import DatabaseNow
from .concurrent_admin import ConcurrentAdmin
from .notifications import SigningForm


class ApplicationForm(SigningForm):
    """The form of an application: its limits, and the delivery of its messages."""

    class Meta:
        model = Application
        fields = (
            *("name", "description", "active", "rate", "max_priority"),
            *("delivery", "notify_steps", "url"),
        )

    def clean(self) -> dict[str, Any]:
        """Check that its messages have a way to go, and only one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        name = cleaned.get("name") or self.instance.name
        delivery = cleaned.get("delivery")
        if delivery and (delivery == Delivery.CONSUMER) != (name in registry.receivers):
            known = ", ".join(sorted(registry.receivers)) or "none"
            self.add_error(
                "delivery", f"These applications have a consumer inside this project: {known}."
            )
        if delivery == Delivery.PUSH:
            self.check_receiver("url", cleaned.get("url", ""))
        return cleaned


@admin.register(Application)
class ApplicationAdmin(ConcurrentAdmin):
    """Applications, which submit tasks and receive status messages."""

    form = ApplicationForm
    list_display = ("name", "how", "active", "notify_steps", "rate", "good_tokens", "receiver")
    list_filter = ("delivery", "active")
    search_fields = ("name", "description")
    ordering = ("name",)
    actions = ("redeliver",)
    fieldsets = (
        (None, {"fields": ("name", "description", "active", "rate", "max_priority")}),
        ("Status messages", {"fields": ("delivery", "notify_steps")}),
        ("Webhook", {"fields": ("url", "new_secret", "forget_old_secret")}),
    )

    def get_readonly_fields(
        self, _request: HttpRequest, application: Application | None = None
    ) -> tuple[str, ...]:
        """Keep the name: tasks and messages know the application by it."""
        return ("name",) if application else ()

    def has_delete_permission(
        self, _request: HttpRequest, _application: Application | None = None
    ) -> bool:
        """Refuse: its tasks name it. It can be switched off."""
        return False

    @admin.display(description="delivery", ordering="delivery")
    def how(self, application: Application) -> str:
        """The kind of its delivery."""
        return application.delivery

    @admin.display(description="tokens")
    def good_tokens(self, application: Application) -> int:
        """Count its tokens that are good."""
        return _good(application.tokens.all()).count()

    @admin.display(description="receiver")
    def receiver(self, application: Application) -> str:
        """Say whether what is sent arrives."""
        if application.delivery != Delivery.PUSH:
            return "-"
        if application.push_failures:
            return f"failing ({application.push_failures}): {application.push_error}"
        return "delivering"

    @admin.action(description="Redeliver refused messages", permissions=["change"])
    def redeliver(self, request: HttpRequest, chosen: QuerySet[Application]) -> None:
        """Give messages that could not be delivered another chance."""
        by = request.user.get_username()
        count = sum(
            dead_letters_actions.retry(
                DeadLetterFilter(kind=Kind.STATUS, name=application.name), by=by
            )
            for application in chosen
        )
        self.message_user(request, f"{count} messages will be redelivered.")


class TokenForm(forms.ModelForm):  # type: ignore[type-arg] # generic for the type checker only
    """What a new token is for."""

    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    last_day = forms.DateField(
        required=False, widget=AdminDateWidget, help_text="Leave empty for no expiry."
    )

    class Meta:
        model = ApplicationToken
        fields = ("application", "label", "scopes")

    def clean_last_day(self) -> date | None:
        """Refuse a day that is over: the token would be good for nothing."""
        day: date | None = self.cleaned_data["last_day"]
        if day and day < timezone.localdate():
            raise ValidationError("This day is over. Choose today or a later day.", code="past")
        return day

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scopes"].choices = [  # type: ignore[attr-defined] # it is a choice field
            (name, f"{name}: {what}") for name, what in sorted(registry.scopes.items())
        ]


@admin.register(ApplicationToken)
class ApplicationTokenAdmin(ConcurrentAdmin):
    """Tokens: made, and revoked; neither changed nor deleted."""

    form = TokenForm
    list_display = (
        *("begins", "application", "label", "may", "state"),
        *("created_at", "created_by", "used_at", "revoked_by"),
    )
    list_filter = ("application", ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("application",)
    ordering = ("-id",)
    actions = ("revoke",)

    def has_change_permission(
        self, _request: HttpRequest, _token: ApplicationToken | None = None
    ) -> bool:
        """Refuse: who holds a token relies on what it is good for."""
        return False

    def has_delete_permission(
        self, _request: HttpRequest, _token: ApplicationToken | None = None
    ) -> bool:
        """Refuse: that there was one is to be known later."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Ask for the permission that the action below names."""
        return request.user.has_perm("orchestration.change_applicationtoken")

    @admin.display(description="token")
    def begins(self, token: ApplicationToken) -> str:
        """Return how it begins."""
        return f"{token.start}…"

    @admin.display(description="scopes")
    def may(self, token: ApplicationToken) -> str:
        """Return what it is good for."""
        return ", ".join(token.scopes)

    @admin.display(description="state")
    def state(self, token: ApplicationToken) -> str:
        """Say whether it is good."""
        if token.revoked_at:
            return f"revoked {token.revoked_at:%Y-%m-%d %H:%M} UTC"
        return "good" if _good(ApplicationToken.objects.filter(id=token.id)).exists() else "expired"

    def save_model(
        self, request: HttpRequest, obj: ApplicationToken, form: TokenForm, _change: bool
    ) -> None:
        """Make it; the token itself goes no further than to the page that shows it."""
        made, secret = application_tokens.issue(
            obj.application,
            label=obj.label,
            scopes=form.cleaned_data["scopes"],
            by=request.user.get_username(),
            expires_at=_end_of(form.cleaned_data["last_day"]),
        )
        obj.pk, obj.start = made.pk, made.start
        request.META["orchestration.token"] = secret

    def response_add(
        self, request: HttpRequest, obj: ApplicationToken, _post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token, this once."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token of {obj.application}",
            "opts": self.opts,
            "made": obj,
            "token": request.META.pop("orchestration.token"),
        }
        return TemplateResponse(request, "admin/orchestration/token.html", context)

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApplicationToken]) -> None:
        """Revoke the chosen tokens."""
        ids = list(chosen.values_list("id", flat=True))
        done = application_tokens.revoke(ids, by=request.user.get_username())
        self.message_user(request, f"Revoked: {done} of {len(ids)}.")


def _end_of(day: date | None) -> datetime | None:
    return timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min)) if day else None


def _good(tokens: QuerySet[ApplicationToken]) -> QuerySet[ApplicationToken]:
    return tokens.filter(Q(expires_at=None) | Q(expires_at__gt=DatabaseNow()), revoked_at=None)
