"""Set the values of an earlier version of a setting again: by its own form, and with a reason."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from .bounds import LONGEST, REASON

Change = tuple[str, Any, Any]


class RevertForm(forms.Form):
    """Why a version is set again; `seen` is the newest one that was looked at."""

    reason = forms.CharField(max_length=LONGEST, help_text="Kept in the history, with your name.")
    seen = forms.IntegerField(widget=forms.HiddenInput)


class Revertible(ModelAdmin):  # type: ignore[type-arg] # generic for the type checker only
    """Pages that show what an earlier version would change, and set its values."""

    def get_urls(self) -> list[URLPattern]:
        """Have a page of our own for each version.

        simple_history's lets anybody who may *view* a row post an old version of it.
        """
        view = self.admin_site.admin_view(self.revert_view)
        own = path(
            "<path:object_id>/history/<int:version>/revert/", view, name=self._named("revert")
        )
        return [own, *ModelAdmin.get_urls(self)]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer the pages to those who may change the row."""
        if self.get_object(request, unquote(object_id)) is None:
            raise Http404
        extra = {"may_revert": self.has_change_permission(request), **(extra_context or {})}
        return super().history_view(request, object_id, extra)

    def revert_view(self, request: HttpRequest, object_id: str, version: int) -> HttpResponse:
        """Show the difference, and set the values after the same validation as the form's own."""
        with transaction.atomic():
            known = self.get_object(request, unquote(object_id))
            rows = self.get_queryset(request).select_for_update()
            row = known and rows.filter(pk=known.pk).first()
            if not self.has_change_permission(request, row):
                raise PermissionDenied
            record = row and _versions(row).filter(history_id=version).first()
            if row is None or record is None:
                raise Http404
            old, changes = self._old(request, row, record)
            newest = _versions(row)[0].history_id
            typed = request.POST if request.method == "POST" else None
            form = RevertForm(typed, initial={"seen": newest})
            if form.is_valid() and form.cleaned_data["seen"] != newest:
                form = RevertForm({"reason": form.cleaned_data["reason"], "seen": newest})
                form.is_valid()
                form.add_error(None, "It was changed since you opened the page. Check it again.")
            if changes and old.is_valid() and form.is_valid():
                return self._set(request, old, form.cleaned_data["reason"])
        context = {
            **self.admin_site.each_context(request),
            "title": f"Revert {row}",
            "opts": self.opts,
            "original": row,
            "record": record,
            "changes": changes,
            "form": form,
            "wrong": [one for found in old.errors.values() for one in found],
        }
        return render(request, "admin/orchestration/revert.html", context)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Offer to undo what was just saved."""
        response = super().response_change(request, obj)
        before = _versions(obj)[1:2]
        if before and _differences(obj, _values(before[0], self._fields(request, obj))):
            address = reverse(f"admin:{self._named('revert')}", args=[obj.pk, before[0].history_id])
            link = format_html('<a href="{}" data-undo>Undo this change…</a>', address)
            messages.info(request, link)
        return response

    def _set(self, request: HttpRequest, old: Any, reason: str) -> HttpResponse:
        row = old.save(commit=False)
        row._change_reason = reason  # noqa: SLF001 - documented by simple_history
        self.save_model(request, row, old, True)
        self.log_change(request, row, f"Reverted: {reason}")
        messages.success(request, f"The values of {row} are set again.")
        address = reverse(f"admin:{self._named('history')}", args=[row.pk])
        return HttpResponseRedirect(address)

    def _old(self, request: HttpRequest, row: Model, record: Any) -> tuple[Any, Sequence[Change]]:
        """Return the form with the values of a version, and what they would change."""
        values = _values(record, self._fields(request, row))
        changes = _differences(row, values)
        return self.get_form(request, row, change=True)(values, instance=row), changes

    def _fields(self, request: HttpRequest, row: Model) -> list[str]:
        fields = self.get_form(request, row, change=True).base_fields
        return [name for name in fields if name != REASON]

    def _named(self, view: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{view}"


def _versions(row: Any) -> Any:
    """Return the versions of a row, the newest first."""
    return row.history.order_by("-history_id")


def _values(record: Any, fields: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in fields}


def _differences(row: Model, values: Mapping[str, Any]) -> list[Change]:
    """Return the fields that differ: what people call them, what they are, what they were."""
    return [
        (name.replace("_", " "), getattr(row, name), value)
        for name, value in values.items()
        if getattr(row, name) != value
    ]
