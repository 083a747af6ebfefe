"""What one person may do alone: how the day is counted and looked up, and what came before."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import IntegrityError, connection, transaction

from orchestration.decisions.progress import Refusal
from orchestration.models import AccountTie, Operation, SoloAct, SupervisorPolicy
from orchestration.models.fields import DatabaseNow
from orchestration.operations.lifecycle import approve
from orchestration.people import accounts, limits
from orchestration.people.person import Person
from tests.support.operations import confirmed, failed
from tests.support.operators import person
from tests.support.plans import plan

pytestmark = pytest.mark.django_db
ANN = Person(name="ann", user=7)
SUM = import_module("orchestration.migrations.0017_second_person_checked").SUM


def test_day_adds_up_items_and_each_currency():
    limits.count(ANN, 3, {"EUR": 500, "JPY": 20})
    limits.count(ANN, 1, {"EUR": 250})
    limits.count(Person(name="bob", user=8), 5, {"EUR": 1})
    day = limits.day_of(ANN)
    assert (day.items, day.money) == (4, {"EUR": 750, "JPY": 20})
    assert (day.most_items, day.most_money) == (1000, 1_000_000)
    assert day.figures == [("4", "1,000 items"), ("€7.50", "€10,000.00"), ("¥20", "¥1,000,000")]


@pytest.mark.parametrize(
    ("items", "money", "beyond"),
    [
        (996, {}, False),
        (997, {}, True),
        (1, {"EUR": 999_500}, False),
        (1, {"EUR": 999_501}, True),
        (1, {"USD": 999_501}, False),
    ],
)
def test_limit_is_for_all_of_the_day(items, money, beyond):
    limits.count(ANN, 4, {"EUR": 500})
    assert bool(limits.day_of(ANN).excess(items, money)) == beyond


def test_what_was_done_longer_ago_does_not_count():
    limits.count(ANN, 4, {"EUR": 500})
    SoloAct.objects.update(at=DatabaseNow() - timedelta(hours=24))
    assert limits.day_of(ANN).items == 0


def test_empty_limits_allow_everything():
    SupervisorPolicy.objects.update(approve_items=None, approve_sum=None)
    assert limits.day_of(ANN).excess(10**6, {"EUR": 10**12}) == ""
    assert limits.day_of(ANN).figures == []


def test_all_shells_are_one_person():
    for name in ("ann", "bob"):
        limits.count(Person(name=name), 2, {})
    assert limits.day_of(Person(name="cid")).items == 4


def test_day_is_found_by_an_index():
    used = {index for _, index in plan(limits.DONE, {"accounts": [1, 2]}) if index}
    assert used == {"solo_act_of_day"}


def test_accounts_of_a_person_are_found_by_indexes():
    AccountTie.objects.create(account=2, set_up_by=1, by_superuser=False, kind="created")
    AccountTie.objects.create(account=3, set_up_by=2, by_superuser=False, kind="rights")
    AccountTie.objects.create(account=4, set_up_by=3, by_superuser=True, kind="created")
    assert accounts.of_person(3) == {1, 2, 3}
    assert accounts.one_person(4, 3)
    assert not accounts.one_person(4, 1)
    used = {index for _, index in plan(accounts.ONE_PERSON, {"user": 3}) if index}
    assert used == {"account_tie_account", "account_tie_by"}


@pytest.mark.parametrize("account", [1, 2])
def test_database_refuses_a_confirmation_by_one_of_the_two(account):
    tie = AccountTie.objects.create(account=2, set_up_by=1, by_superuser=False, kind="created")
    with pytest.raises(IntegrityError), transaction.atomic():
        AccountTie.objects.filter(id=tie.id).update(confirmed_by=account)


def test_database_refuses_one_account_as_two_persons():
    operation = confirmed(failed(1), actor=person("ann", "resubmit"))
    with pytest.raises(IntegrityError), transaction.atomic():
        Operation.objects.filter(id=operation.id).update(
            approved_by="bob", approved_by_user=operation.actor_user
        )


def test_operation_of_the_former_release_goes_by_name():
    SupervisorPolicy.objects.update(approve_items=0)
    ann, bob = person("ann", "resubmit", "approve"), person("bob", "approve")
    operation = confirmed(failed(1), actor=ann)
    Operation.objects.filter(id=operation.id).update(actor_user=None)
    assert approve(operation.id, actor=Person.of(ann)) is Refusal.SAME_PERSON
    assert approve(operation.id, actor=Person.of(bob)) is None


@pytest.mark.parametrize(("ever_set", "expected"), [(False, 1_000_000), (True, None)])
def test_migration_sets_the_sum_only_where_no_admin_ever_did(ever_set, expected):
    policy = SupervisorPolicy.objects.get()
    SupervisorPolicy.history.all().delete()
    if ever_set:
        policy.approve_sum = 500
        policy.save()
    policy.approve_sum = None
    policy.save()
    with connection.cursor() as cursor:
        cursor.execute(SUM)
    policy.refresh_from_db()
    assert policy.approve_sum == expected
