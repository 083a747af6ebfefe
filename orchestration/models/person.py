"""What the two-person rule needs: who set up which account, and what one person did alone."""

from django.db import models
from django.db.models import F, Q

from .fields import DatabaseNow, one_of, state_field
from .operation import Operation


class TieKind(models.TextChoices):
    """What one account did to another, after which one person may hold both."""

    CREATED = "created", "created"
    PASSWORD = "password", "set its password"
    EMAIL = "email", "changed its e-mail address"
    RIGHTS = "rights", "gave it rights"
    FACTOR = "factor", "reset its second factor"


class AccountTie(models.Model):
    """An account that another one set up: they count as one person until a third one confirms it.

    Ids of users are kept as numbers, not as references: they stay when a user is deleted, and
    Postgres gives none of them twice.
    """

    account = models.BigIntegerField(help_text="The account that was set up.")
    set_up_by = models.BigIntegerField(help_text="The account that did it.")
    by_superuser = models.BooleanField(
        help_text="A superuser did it: only these two count as one person, not all of its accounts."
    )
    kind = state_field(TieKind, max_length=10)
    mark = models.CharField(
        max_length=64, blank=True, help_text="Hash of the password's hash, if it was set then."
    )
    at = models.DateTimeField(db_default=DatabaseNow())
    confirmed_at = models.DateTimeField(null=True, help_text="When a third account confirmed it.")
    confirmed_by = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            one_of("kind", TieKind, "account_tie_kind_known"),
            models.CheckConstraint(condition=~Q(account=F("set_up_by")), name="account_tie_of_two"),
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True)
                | ~Q(confirmed_by=F("set_up_by")) & ~Q(confirmed_by=F("account")),
                name="account_tie_confirmed_by_a_third",
            ),
        ]
        indexes = [
            # the accounts of one person, in both directions
            models.Index(
                fields=["account"],
                name="account_tie_account",
                condition=Q(confirmed_at__isnull=True),
            ),
            models.Index(
                fields=["set_up_by"], name="account_tie_by", condition=Q(confirmed_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account}: {self.get_kind_display()} by {self.set_up_by}"


class SoloAct(models.Model):
    """What one person did without a second one: a bulk operation, or an act on one task."""

    account = models.BigIntegerField(help_text="The user's id; 0 for all that is done in shells.")
    items = models.PositiveIntegerField(help_text="Steps or tasks.")
    money = models.JSONField(default=dict, help_text="What it moves, by currency, minor units.")
    operation = models.ForeignKey(
        Operation, models.CASCADE, null=True, related_name="+", db_index=False, db_constraint=False,
        help_text="If it was one. Few rows are kept, so that no index is needed.",
    )  # fmt: skip
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = [
            # what a person did within a day
            models.Index(fields=["account", "at"], name="solo_act_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.account}: {self.items}"
