"""What admins set of schedules: when tasks are submitted, and with which input."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest

from ... import registry
from ...declarations import problem, schedules
from ...models import Schedule
from .bounds import SettingForm
from .columns import measured
from .settings import SettingAdmin


class ScheduleForm(SettingForm):
    """The form of a schedule, which is refused where no task could be submitted by it."""

    instance: Schedule

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if start := self.fields.get("start_at"):  # its label is for neither of its inputs
            for part, widget in zip(("date", "time"), start.widget.widgets, strict=True):
                widget.attrs["aria-label"] = f"{start.label}, {part}"

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.errors:
            return
        for mistake in problem.in_name("schedule", self.instance.name):
            self.add_error("name", ValidationError(f"{mistake.text.capitalize()}."))
        for field, text in schedules.mistakes(self.instance):
            self.add_error(field if field in self.fields else None, ValidationError(text))


@admin.register(Schedule)
class ScheduleAdmin(SettingAdmin):
    """When tasks are submitted by the calendar."""

    form = ScheduleForm
    list_display = (
        "name", "workflow", "cron", "zone", measured("every", "s"), "overlap", "catch_up", "paused",
        "declared", "due_at", "updated_at",
    )  # fmt: skip
    list_filter = ("paused", "declared", "overlap", "catch_up")
    search_fields = ("name__startswith", "workflow")
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "workflow", "data", "due_field", "paused", "declared")}),
        (
            "When",
            {
                "fields": ("cron", "zone", "every", "start_at", "jitter", "due_at"),
                "description": "A cron expression in a time zone, or a number of seconds from a first due "
                "time on. After a change the schedule is planned anew, from now on.",
            },
        ),
        (
            "When the last task has not ended, or due times were missed",
            {
                "fields": ("overlap", "catch_up", "catch_up_within"),
                "description": "Of a task in error, too, nothing has ended: a person decides about it.",
            },
        ),
        ("The tasks", {"fields": ("priority", "fairness_key", "reply_to", "updated_at")}),
    )
    shown = ("declared", "due_at", "updated_at")

    def get_readonly_fields(
        self, _request: HttpRequest, obj: Model | None = None
    ) -> tuple[str, ...]:
        """Keep the name: the references of tasks begin with it."""
        return ("name", *self.shown) if obj else self.shown

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete what code declares: it would come back."""
        if obj is not None and obj.declared and obj.name in registry.schedules:
            return False
        return super().has_delete_permission(request, obj)
