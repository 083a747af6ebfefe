"""Tasks: what applications submit (P20)."""

from typing import Self

from django.db import models
from django.db.models import Q

from ..payloads.limits import LONGEST_CONTACT, LONGEST_CURRENCY, LONGEST_LABEL
from ..states import LIVE_TASK_STATES, TaskState
from .fields import (
    DatabaseNow,
    FollowingUp,
    Prioritized,
    StoredJSON,
    one_of,
    state_field,
    time_ordered_id,
)


class Task(Prioritized, FollowingUp):
    """One unit of work from an application: here, the processing of one order."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    workflow = models.CharField(max_length=60)
    reference = models.CharField(
        max_length=100, help_text="The application's own id for it: the pattern's OrderID."
    )
    state = state_field(TaskState, default=TaskState.PENDING)
    data = StoredJSON(help_text="The input that the application submitted.")
    posted = models.UUIDField(
        null=True,
        help_text="Hash of the input as it was posted; empty: made by an older release.",
    )
    reply_to = models.CharField(
        max_length=60, blank=True, help_text="The application's private response queue."
    )
    statuses = models.PositiveIntegerField(
        default=0, help_text="How many status messages were written: numbers rise by one."
    )
    notify_steps = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether its application wants to know of each step that ends.",
    )
    owner_application = models.CharField(
        max_length=60,
        blank=True,
        default="",
        help_text="The application that keeps what was recorded with it, and follows all of it.",
    )
    owner_lead = models.IntegerField(
        default=0,
        db_default=0,
        help_text="How many more messages its owner has than the application that submitted it.",
    )
    owner_version = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="The version of its progress that its owner has.",
    )
    overdue = models.BooleanField(default=False)
    complete_by = models.DateTimeField(help_text="When the task counts as overdue.")
    clock_jumps = models.FloatField(
        default=0.0,
        db_default=0.0,
        help_text="Sum of the clock's jumps that `complete_by` allows for, in seconds.",
    )
    undo_at = models.DateTimeField(null=True, help_text="When its undo was asked for.")
    created_at = models.DateTimeField(db_default=DatabaseNow())
    ended_at = models.DateTimeField(null=True)

    parent = models.ForeignKey(
        "Step",
        models.DO_NOTHING,
        null=True,
        related_name="children",
        db_index=False,
        db_constraint=False,
        help_text="The step whose child it is; empty for a task that was submitted.",
    )
    position = models.IntegerField(
        null=True, help_text="Its place among the children of its step, from 0."
    )
    result = StoredJSON(
        null=True,
        help_text="Of a child, what it comes to: a template until it is processed, then the value.",
    )

    # taken from the input when it was made, as its workflow says, for people to know it by
    label = models.CharField(
        max_length=LONGEST_LABEL, db_default="", blank=True, help_text="What people call it."
    )
    contact = models.CharField(
        max_length=LONGEST_CONTACT,
        db_default="",
        blank=True,
        help_text="Whom it is for, in lower case: searched, and personal.",
    )
    value = models.BigIntegerField(
        db_default=0, default=0, help_text="What is at stake, in minor units."
    )
    currency = models.CharField(max_length=LONGEST_CURRENCY, db_default="", blank=True)

    class Meta:
        constraints = [
            # one placement, one task: a submission delivered twice finds the first
            models.UniqueConstraint(fields=["workflow", "reference"], name="task_once"),
            one_of("state", TaskState, "task_state_known"),
            models.CheckConstraint(
                # a task has an end exactly when it has ended
                condition=Q(state__in=["processed", "undone"], ended_at__isnull=False)
                | (~Q(state__in=["processed", "undone"]) & Q(ended_at__isnull=True)),
                name="task_ended_when_final",
            ),
        ]
        indexes = [
            # tasks that become overdue, for the supervisor: live rows only, so it stays small
            models.Index(
                fields=["complete_by"],
                name="task_due",
                condition=Q(state__in=LIVE_TASK_STATES, overdue=False),
            ),
            # and those in error beside them, for the dashboard's list in this order
            models.Index(
                fields=["complete_by"],
                name="task_due_in_error",
                condition=Q(state=TaskState.ERROR),
            ),
            # the dashboard's lists by state, newest first: ids are made in the order of time. Nearly
            # all tasks are processed in the end: the primary key serves these, and each is written once less
            models.Index(
                fields=["state", "-id"],
                name="task_by_state",
                condition=~Q(state=TaskState.PROCESSED),
            ),
            # the late ones that are still under way, newest first: the dashboard counts and lists them
            models.Index(
                fields=["-id"],
                name="task_late",
                condition=Q(state__in=LIVE_TASK_STATES, overdue=True),
            ),
            # and the workflows that have any, for their alerts
            models.Index(
                fields=["workflow"],
                name="task_late_workflow",
                condition=Q(state__in=LIVE_TASK_STATES, overdue=True),
            ),
            # undos that take too long
            models.Index(fields=["undo_at"], name="task_undoing", condition=Q(state="undoing")),
            # the roll-ups: what was created, and what ended, since they last looked
            models.Index(fields=["created_at"], name="task_by_creation"),
            models.Index(
                fields=["ended_at"], name="task_by_end", condition=Q(ended_at__isnull=False)
            ),
            # a look-up by the application's own id, or by how it begins
            models.Index(
                fields=["reference"], opclasses=["varchar_pattern_ops"], name="task_by_reference"
            ),
            # and by what people call it, or whom it is for
            models.Index(
                fields=["label"],
                opclasses=["varchar_pattern_ops"],
                name="task_by_label",
                condition=Q(label__gt=""),
            ),
            models.Index(
                fields=["contact", "-id"],
                opclasses=["varchar_pattern_ops", "uuid_ops"],
                name="task_by_contact",
                condition=Q(contact__gt=""),
            ),
            # the follow-ups of a task, newest first; nearly all tasks are none
            models.Index(
                fields=["about_reference", "-id"],
                opclasses=["varchar_pattern_ops", "uuid_ops"],
                name="task_by_about",
                condition=Q(about_reference__gt=""),
            ),
            # the children of a step, in their order
            models.Index(
                fields=["parent", "position"],
                name="task_of_parent",
                condition=Q(parent__isnull=False),
            ),
            # and whether any has not ended
            models.Index(
                fields=["parent", "position"],
                name="task_child_unended",
                condition=Q(parent__isnull=False, ended_at__isnull=True),
            ),
            # "all above so much", which are few
            models.Index(fields=["value"], name="task_by_value", condition=Q(value__gt=0)),
        ]
        permissions = [
            ("operate", "Can see the operators' dashboard"),
            ("resubmit", "Can resubmit failed steps"),
            ("correct", "Can change a failed step's input, or say that it was done by hand"),
            ("start", "Can start tasks by hand"),
            ("undo", "Can have tasks undone"),
            ("force_undo", "Can have tasks undone although something of them cannot be"),
            ("prioritize", "Can change the priority of tasks"),
            ("bulk", "Can act on many tasks at once"),
            ("approve", "Can be the second person for a big act on many tasks"),
            ("see_personal", "Can see personal data"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.name}"

    @classmethod
    def named(cls, workflow: str, reference: str) -> Self | None:
        """Return the task of a workflow with this reference."""
        return cls.objects.filter(workflow=workflow, reference=reference).first()

    @property
    def follow_ups(self) -> models.QuerySet[Self]:
        """The tasks that are about it, newest first (along `task_by_about`)."""
        rows = type(self).objects.filter(
            about_reference=self.reference, about_reference__gt="", about_workflow=self.workflow
        )
        return rows.order_by("-id")

    @property
    def name(self) -> str:
        """What people call it."""
        return self.label or self.reference
