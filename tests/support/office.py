"""People with real roles who act by HTTP, and big operations for which they need each other."""

import json
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from django.contrib.auth.models import Group, User
from django.urls import reverse

from orchestration.models import Operation, SupervisorPolicy, Task
from orchestration.operations.undo_preview import undo_preview
from tests.support.operators import browser
from tests.support.sandbox import AUTHORIZED, CHARGE

PASSWORD = "correct horse battery"
ALONE = 2  # items that one person may act on alone


class Office:
    """An admin `ada` who attacks, leads and operators, and a superuser; by name: users and browsers."""

    def __init__(self) -> None:
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": ALONE})
        self.users: dict[str, User] = {}
        for name, role in (
            ("ada", "admin"),
            ("lea", "lead"),
            ("ann", "operator"),
            ("dan", "admin"),
        ):
            self.employ(name, role)
        root = User.objects.create_superuser("root", "root@example.org", PASSWORD)
        self.users["root"] = root

    def employ(self, name, role) -> User:
        """Make a user as an installation's first ones are made: by a shell."""
        user = User.objects.create_user(name, f"{name}@example.org", PASSWORD, is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        self.users[name] = user
        return user

    def browser(self, name):
        return browser(User.objects.get(username=name))

    def post(self, name, route, *args, **fields):
        """Post to a page of the dashboard as a user."""
        return self.browser(name).post(reverse(f"ops:{route}", args=args), fields)

    def admin(self, name, path, **fields):
        """Post to a page of the admin as a user."""
        return self.browser(name).post(f"/admin/{path}", fields)

    def draft(self, name, tasks=(), act="resubmit", **more) -> Operation:
        fields = {"act": act, "task": [str(task.id) for task in tasks], **more}
        assert self.post(name, "operation_new", **fields).status_code == 303
        return Operation.objects.latest("id")

    def confirm(self, name, operation, **changes):
        operation.refresh_from_db()
        fields = {"reason": "it is mended", "rate": "1000", "first": "all"}
        fields["shown"] = operation.preview["eligible"]
        return self.post(name, "operation_confirm", operation.id, **{**fields, **changes})

    def operation(self, name, tasks=(), act="resubmit", **changes) -> Operation:
        """Have a user draft and confirm an operation."""
        operation = self.draft(name, tasks, act)
        assert self.confirm(name, operation, **changes).status_code == 303
        operation.refresh_from_db()
        return operation

    def approve(self, name, operation, **fields):
        return self.post(name, "operation_approve", operation.id, **fields)

    def create(self, by, name, role) -> User:
        """Have a user create another one in the admin, and give it a role."""
        fields = {"username": name, "usable_password": "true"}
        made = self.admin(by, "auth/user/add/", password1=PASSWORD, password2=PASSWORD, **fields)
        assert made.status_code == 302, made.text
        user = User.objects.get(username=name)
        assert self.edit(by, user, role=role).status_code == 302
        return user

    def edit(self, by, user, role=None, **changes):
        """Post the admin's page of a user."""
        user.refresh_from_db()
        fields = {
            "username": user.username, "email": user.email, "is_active": "on", "is_staff": "on",
            "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00",
            "groups": [Group.objects.get(name=role).id] if role else
            list(user.groups.values_list("id", flat=True)),
            **changes,
        }  # fmt: skip
        return self.admin(by, f"auth/user/{user.id}/change/", **fields)

    def set_password(self, by, user, password="another horse battery", written="{}"):
        """Set a password in the admin; `written` is how the address has the id."""
        fields = {"password1": password, "password2": password, "usable_password": "true"}
        return self.admin(by, f"auth/user/{written.format(user.id)}/password/", **fields)

    def vouch(self, by, user):
        """Confirm in the admin that an account belongs to another person."""
        fields = {"action": "confirm", "_selected_action": user.id}
        return self.admin(by, "auth/user/", **fields)

    def limit(self, by, **limits):
        """Change the limits in the admin."""
        policy = SupervisorPolicy.objects.get()
        names = (
            "interval", "oldest_waiting", "undo_stuck", "status_undelivered", "audit_every",
            "whole_audit_every", "keep_records_days", "approve_items", "approve_sum",
        )  # fmt: skip
        fields = {name: getattr(policy, name) for name in names}
        fields = {name: "" if value is None else value for name, value in fields.items()}
        return self.admin(by, "orchestration/supervisorpolicy/1/change/", **{**fields, **limits})

    def change(self, name, step, **changes):
        """Resubmit a step with other values in its request."""
        step.refresh_from_db()
        flags = {"nothing_done": changes.pop("nothing_done")} if "nothing_done" in changes else {}
        payload = json.dumps({**step.request, **changes})
        fields = {"attempt": step.attempt, "reason": "they called", "payload": payload, **flags}
        return self.post(name, "change", step.id, **fields)

    def by_hand(self, name, step, **result):
        step.refresh_from_db()
        fields = {"attempt": step.attempt, "reason": "by phone", "payload": json.dumps(result)}
        return self.post(name, "by_hand", step.id, **fields)

    def undo(self, name, task: Task):
        seen = undo_preview(task.id)["seen"]
        return self.post(name, "undo", task.id, seen=seen, reason="they changed their mind")

    def resubmit(self, name, step):
        step.refresh_from_db()
        fields = {"attempt": step.attempt, "reason": "it is mended"}
        return self.post(name, "resubmit", step.id, **fields)


def charge(port, key, **changes) -> str:
    """Make a payment at the sandbox, as if in its own pages; return its id."""
    form = urlencode({**CHARGE, **{name: str(value) for name, value in changes.items()}}).encode()
    headers = {**AUTHORIZED, "Idempotency-Key": key}
    asked = Request(f"http://127.0.0.1:{port}/v1/payment_intents", form, headers)
    with urlopen(asked, timeout=10) as answer:  # noqa: S310 - its own server
        return str(json.load(answer)["id"])
