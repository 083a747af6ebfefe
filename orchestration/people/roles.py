"""The roles of those who operate the engine: groups of named permissions, one place for them.

Each role can all that the one before it can. The groups are there after every migration, with at
the least these permissions; who wants other roles makes groups of other names.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission

VIEWER = ("orchestration.operate",)
OPERATOR = (
    *VIEWER,
    "orchestration.see_personal",
    "orchestration.resubmit",
    "orchestration.correct",
    "orchestration.hold",
    "orchestration.prioritize",
    "orchestration.acknowledge",
    "orchestration.undo",
    "orchestration.bulk",
    "orchestration.mute",
    "orchestration.share",
    "orchestration.requeue",
    "orchestration.start",
)
LEAD = (*OPERATOR, "orchestration.force_undo", "orchestration.approve")
# what only the engine writes, to look at in the admin
RECORDS = (
    *(
        "task",
        "step",
        "wait",
        "externalid",
        "join",
        "statestore",
        "attempt",
        "attemptevidence",
        "event",
    ),
    *("submission", "statusmessage", "taskrequest", "undorequest", "deadletter", "notification"),
    *("removedtask", "applicationrole", "accounttie", "soloact"),
    *(
        "alert",
        "incident",
        "incidenthit",
        "incidenthour",
        "incidenttally",
        "operation",
        "operationitem",
        "auditrun",
        "export",
    ),
    *("gate", "hold", "worker", "lease", "clockjump", "jumpedtime"),
    *("taskrollup", "steprollup", "gaterollup"),
)
ADMIN = (
    *LEAD,
    *(f"orchestration.view_{record}" for record in RECORDS),
    "orchestration.view_policy",
    "orchestration.change_policy",
    "orchestration.view_steppolicy",
    "orchestration.change_steppolicy",
    "orchestration.view_supervisorpolicy",
    "orchestration.change_supervisorpolicy",
    "orchestration.view_retentionpolicy",
    "orchestration.change_retentionpolicy",
    "orchestration.view_schedule",
    "orchestration.add_schedule",
    "orchestration.change_schedule",
    "orchestration.delete_schedule",
    "orchestration.view_fairnessweight",
    "orchestration.add_fairnessweight",
    "orchestration.change_fairnessweight",
    "orchestration.delete_fairnessweight",
    "orchestration.view_notificationchannel",
    "orchestration.add_notificationchannel",
    "orchestration.change_notificationchannel",
    "orchestration.delete_notificationchannel",
    "orchestration.view_application",
    "orchestration.add_application",
    "orchestration.change_application",
    "orchestration.view_applicationtoken",
    "orchestration.add_applicationtoken",
    "orchestration.change_applicationtoken",
    "auth.view_user",
    "auth.add_user",
    "auth.change_user",
    "auth.view_group",
)
ROLES = {"viewer": VIEWER, "operator": OPERATOR, "lead": LEAD, "admin": ADMIN}


def ensure(sender: AppConfig, **options: Any) -> None:
    """Make the groups; called after every migration."""
    using = options.get("using", "default")
    # this receiver runs before those that make the permissions
    for app in (sender, sender.apps.get_app_config("auth")):  # type: ignore[union-attr]
        create_permissions(app, verbosity=0, using=using)
    for name, permissions in ROLES.items():
        give(name, permissions)


def give(group: str, permissions: Iterable[str]) -> None:
    """Add permissions to a group, each as "app.codename"; it keeps those that it has.

    >>> give("receptionists", ["auth.view_user", "orchestration.operate"])
    """
    names = set(permissions)
    known = Permission.objects.filter(codename__in={name.partition(".")[2] for name in names})
    granted = [
        permission
        for permission in known.select_related("content_type")
        if f"{permission.content_type.app_label}.{permission.codename}" in names
    ]
    Group.objects.get_or_create(name=group)[0].permissions.add(*granted)
