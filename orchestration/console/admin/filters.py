"""Lists of the admin whose addresses anyone may write: with values that no column can hold."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters, ModelAdmin
from django.contrib.admin.views.main import ERROR_FLAG, ChangeList
from django.core.exceptions import BadRequest, ValidationError
from django.db import DataError, router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

if TYPE_CHECKING:  # generic for the type checker only
    Base = ModelAdmin[Any]
else:
    Base = ModelAdmin


class FilteredAdmin(Base):
    """A list that answers an odd filter as Django answers an unknown one: by the list without it."""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list, counted already; what the database or Python cannot read is a wrong filter.

        Such as a NUL, the year 99999999, or the first day of all, which is none yet in another time zone.
        """
        try:
            with transaction.atomic(using=router.db_for_read(self.model)):
                return super().get_changelist_instance(request)
        except (DataError, ValueError, OverflowError) as error:
            if not request.GET or ERROR_FLAG in request.GET:
                raise
            raise IncorrectLookupParameters(error) from error

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **options: Any
    ) -> HttpResponse | None:
        """Act on the ticked rows; refuse what cannot be the key of a row."""
        self.check_keys(request.POST.getlist(ACTION_CHECKBOX_NAME))
        return super().response_action(request, queryset, *args, **options)

    def check_keys(self, keys: Iterable[str]) -> None:
        """Refuse a request with what cannot be the key of a row."""
        for key in keys:
            try:
                self.opts.pk.to_python(key)
            except ValidationError as error:
                raise BadRequest(f"no key of a row: {key!r}") from error
            if "\0" in key:
                raise BadRequest("a NUL in the key of a row")
