"""Forms that two people may have open at once: each writes what that person changed, and no more.

Each field carries the value that it showed. When the form comes back, a field that was left alone is
taken from the row as it is by then; one that both people changed is refused, with both values.
"""

import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField
from django.utils.crypto import salted_hmac
from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator

if TYPE_CHECKING:  # generic for the type checker only
    RowForm = forms.ModelForm[Any]
else:
    RowForm = forms.ModelForm

LONGEST = 120  # characters of a value in a sentence
REFUSED = (
    "Another user changed this since you opened the page, to %(now)s. You entered %(typed)s. "
    "Save again to replace it by yours."
)
REFUSED_CHOICES = (
    "Another user changed this since you opened the page: %(now)s. You chose: %(typed)s. "
    "Save again to replace it by yours."
)
REFUSED_UNSEEN = (
    "Another user changed the secrets since you opened the page. If this is still right, enter it "
    "again and save."
)


class ComparedField(BoundField):
    """A field with the value that it showed beside it."""

    form: "ConcurrentForm"

    def __str__(self) -> SafeString:
        """Return the widget, and the value that it shows, hidden."""
        if self.name not in self.form.now:
            return super().__str__()
        shown = forms.HiddenInput().render(self.html_initial_name, self.form.now[self.name])
        return mark_safe(self.as_widget() + shown)  # noqa: S308 - both are rendered by Django

    __html__ = __str__

    def value(self) -> Any:
        """Return what was typed; the row's value, as it is now, if nothing was."""
        if self.name in self.form.untouched:
            return self.field.prepare_value(self.initial)
        return super().value()

    def differs(self) -> bool:
        """Return whether the form asks for another value than the row has now."""
        changed: bool = super()._has_changed()  # type: ignore[misc] # its stubs leave it out
        return changed and self.name not in self.form.untouched

    _has_changed = differs  # Django's name


class ConcurrentForm(RowForm):
    """A form of a row that may change while the form is open; the row is to be locked on a save.

    `typed` are values to show instead of the row's. `watched`, of a form with fields that are not the
    row's, names the secrets that each of them replaces. What a page of before does not carry, and
    what a script does not send, is compared with the row as it is.
    """

    bound_field_class = ComparedField
    typed: Mapping[str, Any] = {}
    watched: Mapping[str, Sequence[str]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now: dict[str, str] = {}
        if not self.instance._state.adding:  # noqa: SLF001 - documented by Django
            for name in _compared(self):
                field = self.fields[name]
                self.now[name] = _text(field, self.get_initial_for_field(field, name))
                field.show_hidden_initial = False
            for name, secrets in self._watched.items():
                values = [getattr(self.instance, secret) for secret in secrets]
                self.now[name] = json.dumps(salted_hmac("admin.form", repr(values)).hexdigest())
        self.initial.update(self.typed)

    @property
    def _watched(self) -> Mapping[str, Sequence[str]]:
        return getattr(self, "watched", {})

    @cached_property
    def untouched(self) -> frozenset[str]:
        """Return the fields that came back as they were shown."""
        return frozenset(name for name in self._shown if not self._was_changed(name))

    @cached_property
    def _shown(self) -> dict[str, str]:
        """Return what the form carried, by field."""
        names = {name: self.add_initial_prefix(name) for name in self.now}
        return {name: self.data[key] for name, key in names.items() if _is_json(self.data.get(key))}

    def full_clean(self) -> None:
        """Validate the row as it would be: as it is now, with what was changed in the form."""
        fields = [self.fields[name] for name in self.untouched]
        for field in fields:
            field.disabled = True  # so that Django takes the row's value
        try:
            super().full_clean()
        finally:
            for field in fields:
                field.disabled = False
        if self.is_bound:
            self._keep_what_was_not_offered()
            for name, shown in self._shown.items():
                if shown != self.now[name] and self._differs(name):
                    self.add_error(name, self._refusal(name))

    def _post_clean(self) -> None:
        # a value may be finer than its field, as a time is with microseconds
        columns = {
            column.attname: getattr(self.instance, column.attname)
            for column in self.instance._meta.concrete_fields  # noqa: SLF001 - public by Django's documentation
            if column.name in self.untouched
        }
        super()._post_clean()  # type: ignore[misc] # Django's own hook, which its stubs leave out
        for name, value in columns.items():
            setattr(self.instance, name, value)

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        """Return the row's value; of rows, those that may be chosen."""
        value = super().get_initial_for_field(field, field_name)
        if (
            isinstance(field, forms.ModelMultipleChoiceField)
            and field.queryset is not None
            and value
        ):
            offered = set(field.queryset.values_list("pk", flat=True))
            return [row for row in value if getattr(row, "pk", row) in offered]
        return value

    def _keep_what_was_not_offered(self) -> None:
        """Keep rows that are chosen already, and that this user cannot see among the choices."""
        for name in self.now.keys() & self.cleaned_data.keys():
            field, former = self.fields[name], self.initial.get(name)
            if isinstance(field, forms.ModelMultipleChoiceField) and former:
                offered = set(self.get_initial_for_field(field, name))
                hidden = [row for row in former if row not in offered]
                if hidden:
                    self.cleaned_data[name] = [*self.cleaned_data[name], *hidden]

    def _was_changed(self, name: str) -> bool:
        field, typed = self.fields[name], self[name].data
        shown = None if name in self._watched else json.loads(self._shown[name])
        try:
            before = shown if isinstance(shown, list) else field.to_python(shown)
        except ValidationError:
            return True
        return field.has_changed(_lines(before), _lines(typed))

    def _differs(self, name: str) -> bool:
        field = self[name]
        return isinstance(field, ComparedField) and field.differs()

    def _refusal(self, name: str) -> ValidationError:
        """Return the sentence with both values; of choices, with what was added and removed."""
        if name in self._watched:
            return ValidationError(REFUSED_UNSEEN, code="changed")
        field = self.fields[name]
        shown, now = (json.loads(text) for text in (self._shown[name], self.now[name]))
        typed = self[name].data
        if isinstance(field, forms.MultipleChoiceField | forms.ModelMultipleChoiceField):
            params = {
                key: _difference(field, shown, new) for key, new in (("now", now), ("typed", typed))
            }
            return ValidationError(REFUSED_CHOICES, code="changed", params=params)
        params = {"now": _named(field, now), "typed": _named(field, typed)}
        return ValidationError(REFUSED, code="changed", params=params)


def concurrent(form: type[RowForm]) -> type[ConcurrentForm]:
    """Return a form class whose forms several people may have open at once."""
    if issubclass(form, ConcurrentForm):
        return form
    made: type[ConcurrentForm] = types.new_class(form.__name__, (ConcurrentForm, form))
    made.__module__ = form.__module__
    return made


def _compared(form: RowForm) -> Iterator[str]:
    """Yield the fields of the row that the user sees and can change, without secrets."""
    options = form.instance._meta  # noqa: SLF001 - public by Django's documentation
    for column in (*options.concrete_fields, *options.many_to_many):
        field = form.fields.get(column.name)
        if field is None or field.disabled or field.widget.is_hidden:
            continue
        if not isinstance(field, forms.FileField) and not isinstance(
            field.widget, forms.PasswordInput
        ):
            yield column.name


def _text(field: forms.Field, value: Any) -> str:
    """Return a value as JSON: the same for the same value."""
    value = field.prepare_value(value)
    if isinstance(field, forms.MultiValueField) and not isinstance(value, list):
        return json.dumps(
            [None if part is None else str(part) for part in field.widget.decompress(value)]
        )
    if isinstance(value, Iterable) and not isinstance(value, str):
        return json.dumps(sorted(str(part) for part in value))
    plain = value is None or isinstance(value, str | int | float)
    return json.dumps(value if plain else str(value))


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


def _lines(value: Any) -> Any:
    """Return a value as browsers leave it alone: they send each end of a line in their own way."""
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def _labels(field: Any) -> dict[str, str]:
    choices = getattr(field, "choices", ())
    return {str(value): str(label) for value, label in choices}


def _named(field: forms.Field, value: Any) -> str:
    """Return a value in words."""
    if isinstance(value, list):
        value = " ".join(str(part) for part in value if part)
    if isinstance(value, bool) or (isinstance(field, forms.BooleanField) and value is not None):
        return "“yes”" if field.to_python(value) else "“no”"
    if value is None or value == "":
        return "nothing"
    return f"“{Truncator(_labels(field).get(str(value), str(value))).chars(LONGEST)}”"


def _difference(field: Any, before: Iterable[str], after: Iterable[str] | None) -> str:
    labels = _labels(field)
    former, latter = set(before), set(after or ())
    parts = [
        f"{what} {', '.join(sorted(labels.get(row, row) for row in rows))}"
        for what, rows in (("added", latter - former), ("removed", former - latter))
        if rows
    ]
    return "; ".join(parts) or "no difference"
