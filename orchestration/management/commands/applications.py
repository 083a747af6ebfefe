"""`manage.py applications`: manages applications, their delivery and their tokens."""

import getpass
import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from orchestration import registry
from orchestration.alerting import webhooks
from orchestration.applications import tokens
from orchestration.dead_letters import actions
from orchestration.dead_letters.actions import DeadLetterFilter, Kind
from orchestration.models import Application, ApplicationToken
from orchestration.models.application import Delivery

EXAMPLES = """
examples:
  manage.py applications list
  manage.py applications add till-software --description "ask Ann"
  manage.py applications add warehouse --push https://warehouse.example/hook
  manage.py applications token till-software --label "nightly job" --scope status:read --days 90
  manage.py applications tokens till-software
  manage.py applications revoke 12
  manage.py applications redeliver warehouse          what was set aside
  manage.py applications off till-software            refuse its tokens, keep its messages
"""


class Command(BaseCommand):
    """Adds applications, switches them off and on; makes and revokes tokens."""

    help = "Manage applications and their tokens. Secrets are printed once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the actions and their options."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("list", help="all applications")
        add = acts.add_parser("add", help="add an application")
        add.add_argument("name")
        add.add_argument("--description", default="")
        add.add_argument(
            "--push", metavar="URL", default="", help="send its messages there, signed"
        )
        add.add_argument(
            "--steps", action="store_true", help="send it messages about each step, too"
        )
        token = acts.add_parser("token", help="make a token")
        token.add_argument("name")
        token.add_argument("--label", required=True, help="which of its tokens this is")
        token.add_argument("--scope", action="append", required=True, dest="scopes")
        token.add_argument("--days", type=int, help="until it expires; without it, it never does")
        for act, what in (("tokens", "its tokens"), ("redeliver", "deliver what was set aside"),
                          ("off", "switch it off"), ("on", "switch it on")):  # fmt: skip
            acts.add_parser(act, help=what).add_argument("name")
        acts.add_parser("revoke", help="revoke a token").add_argument("token", type=int)

    def handle(self, *_: Any, act: str, **options: Any) -> None:
        """Run the action, and print its result as JSON."""
        self.stdout.write(json.dumps(getattr(self, f"_{act}")(**options), indent=2, default=str))

    def _list(self, **_: Any) -> Any:
        columns = ("name", "delivery", "active", "notify_steps", "rate", "url", "push_error")
        return list(Application.objects.values(*columns))

    def _add(self, name: str, *, description: str, push: str, steps: bool, **_: Any) -> Any:
        secret = webhooks.new_secret() if push else ""
        made = Application(
            name=name, description=description, url=push, secret=secret, notify_steps=steps,
            delivery=Delivery.PUSH if push else Delivery.PULL,
        )  # fmt: skip
        if name in registry.receivers:
            made.delivery = Delivery.CONSUMER
        try:
            if push:
                webhooks.parse_address(push)
            made.full_clean()
        except (ValidationError, webhooks.ForbiddenAddress) as problem:
            raise CommandError(str(problem), returncode=1) from problem
        made.save()
        return {"name": made.name, "delivery": made.delivery} | ({"secret": secret} if push else {})

    def _token(
        self, name: str, *, label: str, scopes: list[str], days: int | None, **_: Any
    ) -> Any:
        until = timezone.now() + timedelta(days=days) if days else None
        try:
            row, token = tokens.issue(
                self._named(name), label=label, scopes=scopes, by=getpass.getuser(),
                expires_at=until,
            )  # fmt: skip
        except tokens.UnknownScope as problem:
            raise CommandError(str(problem), returncode=1) from problem
        return {"id": row.id, "token": token, "scopes": row.scopes, "expires_at": until}

    def _tokens(self, name: str, **_: Any) -> Any:
        columns = ("id", "start", "label", "scopes", "created_by", "expires_at", "used_at")
        return list(self._named(name).tokens.values(*columns, "revoked_at", "revoked_by"))

    def _revoke(self, token: int, **_: Any) -> Any:
        if not tokens.revoke([token], by=getpass.getuser()):
            there = ApplicationToken.objects.filter(id=token).exists()
            why = "was revoked before" if there else "does not exist"
            raise CommandError(f"token {token} {why}", returncode=1)
        return {"revoked": token}

    def _redeliver(self, name: str, **_: Any) -> Any:
        filters = DeadLetterFilter(kind=Kind.STATUS, name=self._named(name).name)
        return {"delivered again": actions.retry(filters, by=getpass.getuser())}

    def _off(self, name: str, **_: Any) -> Any:
        return self._switch(name, active=False)

    def _on(self, name: str, **_: Any) -> Any:
        return self._switch(name, active=True)

    def _switch(self, name: str, *, active: bool) -> Any:
        Application.objects.filter(id=self._named(name).id).update(active=active)
        return {"name": name, "active": active}

    def _named(self, name: str) -> Application:
        application = Application.objects.filter(name=name).first()
        if application is None:
            names = Application.objects.values_list("name", flat=True)
            raise CommandError(
                f"unknown application {name!r}{registry.suggest(name, names)}", returncode=1
            )
        return application
