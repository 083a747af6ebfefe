"""What makes an admin safe for two people at once: forms that compare, and rows that are locked."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.db import router, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.crypto import constant_time_compare, salted_hmac

from .concurrent_form import concurrent
from .filters import FilteredAdmin

SEEN = "seen"  # of a page that asks whether to delete: what the row was


class ConcurrentAdmin(FilteredAdmin):
    """Forms, lists and inlines that write what their user changed, to a locked row."""

    def __init__(self, model: type[Model], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.form = concurrent(self.form)

    def get_inline_instances(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Have the rows of inlines compared too."""
        inlines = super().get_inline_instances(request, obj)
        for inline in inlines:
            inline.form = concurrent(inline.form)
        return inlines

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row; locked, and so as it is now, while a form is saved."""
        row = super().get_object(request, object_id, from_field)
        if row is None or request.method != "POST" or not _connection(self.model).in_atomic_block:
            return row
        return self.get_queryset(request).select_for_update(of=("self",)).filter(pk=row.pk).first()

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        """Have the rows of a list compared too."""
        return super().get_changelist_form(
            request, **{"form": concurrent(forms.ModelForm), **kwargs}
        )

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Save a list under locks; show one that was refused with each row beside its own form."""
        if request.method != "POST" or "_save" not in request.POST:
            return super().changelist_view(request, extra_context)
        with transaction.atomic(using=router.db_for_write(self.model)):
            response = super().changelist_view(request, extra_context)
        shown = (getattr(response, "context_data", None) or {}).get("cl")
        if shown and shown.formset:
            rows = [form.instance for form in shown.formset.forms]
            if any(row._state.adding for row in rows):  # noqa: SLF001 - documented by Django
                text = (
                    "A row of this list has been deleted since you opened it. Check the list again."
                )
                self.message_user(request, text, messages.ERROR)
                return HttpResponseRedirect(request.get_full_path())
            shown.result_list = rows  # which may be in another order since
        return response

    def _get_list_editable_queryset(self, request: HttpRequest, prefix: str) -> QuerySet[Any]:
        self.check_keys(self._get_edited_object_pks(request, prefix))
        rows: QuerySet[Any] = super()._get_list_editable_queryset(request, prefix)
        return rows.order_by("pk").select_for_update(of=("self",))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete a row as long as it is what its user saw."""
        with transaction.atomic(using=router.db_for_write(self.model)):
            row = self.get_object(request, unquote(object_id))
            state = self._state(request, row) if row else ""
            seen = request.POST.get(SEEN)
            if row and seen is not None and not constant_time_compare(seen, state):
                text = f"{row} was changed since you opened the page. Check it again."
                self.message_user(request, text, messages.ERROR)
                return HttpResponseRedirect(request.get_full_path())
            return super().delete_view(request, object_id, {"seen": state, **(extra_context or {})})

    def _state(self, request: HttpRequest, row: Model) -> str:
        """Return what stands for the values of a row that can be changed here."""
        form: Any = self.get_form(request, row, change=True)(instance=row)
        return salted_hmac("admin.delete", repr(sorted(form.now.items()))).hexdigest()


def _connection(model: type[Model]) -> Any:
    return transaction.get_connection(router.db_for_write(model))
