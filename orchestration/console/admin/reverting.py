"""Set the values of an earlier version of a setting again: by its own form, and with a reason."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join

from .bounds import LONGEST, REASON

VERSION = "version"  # in the address of the form: the id of the version whose values it shows


class Revertible(ModelAdmin):  # type: ignore[type-arg] # generic for the type checker only
    """A form that shows the values of an earlier version, to be saved as any other change."""

    def get_urls(self) -> list[URLPattern]:
        """Leave out simple_history's pages: by them who may *view* a row can post an old version of it."""
        return ModelAdmin.get_urls(self)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer earlier versions to those who may change the row."""
        if self.get_object(request, unquote(object_id)) is None:
            raise Http404
        extra = {"may_revert": self.has_change_permission(request), **(extra_context or {})}
        return super().history_view(request, object_id, extra)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Fill the form with the values of the version that the address names."""
        if VERSION in request.GET:
            self._show_version(request, unquote(object_id))
        return super().change_view(request, object_id, form_url, extra_context)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Show values instead of the row's; ask for the reason if they are an earlier version's."""
        form = super().get_form(request, obj, change, **kwargs)
        extra: dict[str, Any] = {"typed": getattr(request, "typed", {})}
        if change and VERSION in request.GET and REASON in form.base_fields:
            help_text = form.base_fields[REASON].help_text
            extra[REASON] = forms.CharField(max_length=LONGEST, help_text=help_text)
        return type(form.__name__, (form,), extra)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Offer to undo what was just saved."""
        response = super().response_change(request, obj)
        before = obj.history.order_by("-history_id")[1:2]
        if before and self._differences(request, obj, before[0]):
            change = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
            address = reverse(change, args=[obj.pk], query={VERSION: before[0].history_id})
            link = format_html('<a href="{}" data-undo>Undo this change…</a>', address)
            messages.info(request, link)
        return response

    def _show_version(self, request: HttpRequest, object_id: str) -> None:
        """Have the form show the values of a version, below a message of what they would change."""
        row: Any = self.get_object(request, object_id)
        version_id = request.GET[VERSION]
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        is_number = row is not None and version_id.isdecimal()
        version: Any = is_number and row.history.filter(history_id=version_id).first()
        if not version:
            raise Http404
        if request.method != "GET":
            return
        changes = self._differences(request, row, version)
        request.typed = {name: then for name, _, then in changes}  # type: ignore[attr-defined] # see get_form
        words = [(name.replace("_", " ").capitalize(), now, then) for name, now, then in changes]
        listed = format_html_join("; ", "<span data-change>{}: {} → {}</span>", words)
        text = "Not saved yet: the form shows the version of {}, by {}. {}"
        time = f"{version.history_date:%Y-%m-%d %H:%M:%S %Z}"
        user = version.history_user or "the system"
        same = "It has the values that are set now."
        messages.warning(request, format_html(text, time, user, listed or same))

    def _differences(
        self, request: HttpRequest, row: Model, version: Any
    ) -> list[tuple[str, Any, Any]]:
        """Return the fields of the form that differ: name, value of the row, value of the version."""
        fields = self.get_form(request, row, change=True).base_fields
        names = (name for name in fields if name != REASON)
        values = ((name, getattr(row, name), getattr(version, name)) for name in names)
        return [(name, now, then) for name, now, then in values if now != then]
