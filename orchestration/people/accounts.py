"""The accounts that one person may hold: who sets up an account could use it.

An account that was created, or given a password, another e-mail address or rights, by another one is
the same person, also over several steps, until a third account confirms that it belongs to someone
else. What a superuser sets up counts as one person with that superuser only.
"""

from collections.abc import Collection
from hashlib import sha256

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from ..database import sql
from ..models import AccountTie
from ..models.fields import DatabaseNow
from ..models.person import TieKind

WITH_PASSWORD = (TieKind.CREATED, TieKind.PASSWORD)

ONE_PERSON = """
WITH RECURSIVE one (id) AS (
    SELECT %(user)s::bigint
    UNION
    SELECT tied.id FROM one CROSS JOIN LATERAL (
        SELECT set_up_by AS id FROM orchestration_accounttie
        WHERE account = one.id AND confirmed_at IS NULL AND NOT by_superuser
        UNION ALL
        SELECT account FROM orchestration_accounttie
        WHERE set_up_by = one.id AND confirmed_at IS NULL AND NOT by_superuser
    ) AS tied
)
SELECT id FROM one
"""


def of_person(user: int) -> set[int]:
    """Return the accounts that the holder of `user` may hold as well, and itself."""
    return {account for (account,) in sql.run(ONE_PERSON, {"user": user})}


def one_person(user: int, other: int) -> bool:
    """Return whether one person may hold both accounts."""
    if user == other or other in of_person(user):
        return True
    pair = Q(account=user, set_up_by=other) | Q(account=other, set_up_by=user)
    return AccountTie.objects.filter(pair, confirmed_at=None).exists()


def tie(user: User, *, by: User, kinds: Collection[TieKind]) -> None:
    """Record what `by` did to another's account; call it in the same transaction."""
    if user.pk == by.pk:
        return
    AccountTie.objects.bulk_create(
        AccountTie(
            account=user.pk, set_up_by=by.pk, by_superuser=by.is_superuser, kind=kind,
            mark=_mark(user) if kind in WITH_PASSWORD else "",
        )
        for kind in kinds
    )  # fmt: skip


def open_ties(user: int) -> list[AccountTie]:
    """Return what was done to set up an account and is not confirmed, oldest first."""
    return list(AccountTie.objects.filter(account=user, confirmed_at=None).order_by("id"))


@transaction.atomic
def confirm(user: User, *, by: User) -> str:
    """End the ties of an account: `by` knows whose it is. Return why not, empty if it is done."""
    ties = AccountTie.objects.select_for_update().filter(account=user.pk, confirmed_at=None)
    open_ties = list(ties)
    if one_person(by.pk, user.pk) or by.pk in {tie.set_up_by for tie in open_ties}:
        return "the account was set up by you, or by an account that you may hold"
    known = _mark(user)
    if any(tie.mark and tie.mark == known for tie in open_ties):
        return "it still has the password that was set for it: its holder has to change that first"
    ties.update(confirmed_at=DatabaseNow(), confirmed_by=by.pk)
    return ""


def _mark(user: User) -> str:
    """Return a hash of the stored password, to see later whether it was changed."""
    return sha256(user.password.encode()).hexdigest() if user.has_usable_password() else ""
