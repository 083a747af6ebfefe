"""A form with a panel beside it: what the values typed in would have done, of what was recorded."""

from typing import Any

from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from .policy_replay import WhatIf, asked


class WhatIfAdmin(ModelAdmin):  # type: ignore[type-arg] # generic for the type checker only
    """The admin of a setting whose form can be tried before it is saved; comes before the others' classes."""

    change_form_template = "admin/orchestration/policy_form.html"

    def replayed(self, row: Any, typed: Any) -> WhatIf:
        """Return what a form `typed` would have done, beside the row as it is."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        """Add the address that answers what the values of the form would have done."""
        view = self.admin_site.admin_view(require_POST(self.what_if_view))
        name = f"{self.opts.app_label}_{self.opts.model_name}_what_if"
        return [path("<path:object_id>/what-if/", view, name=name), *super().get_urls()]

    def what_if_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the panel alone: nothing is saved."""
        row, typed = self._typed(request, object_id)
        context = {"what_if": self.replayed(row, typed), "original": row}
        return render(request, "admin/orchestration/_what_if.html", context)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form; with what was typed in and the panel, if only that was asked for."""
        extra = dict(extra_context or {})
        if asked(request) and object_id:
            row, typed = self._typed(request, object_id)
            extra["what_if"] = self.replayed(row, typed)
            request.typed = typed.cleaned_data  # type: ignore[attr-defined] # see get_form
            request.method = "GET"
        shown: HttpResponse = super().changeform_view(request, object_id, form_url, extra)
        return shown

    def _typed(self, request: HttpRequest, object_id: str) -> tuple[Any, Any]:
        """Return the row as it is, and the form as it was sent."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404
        form = self.get_form(request, row, change=True)
        return row, form(request.POST, instance=row)
