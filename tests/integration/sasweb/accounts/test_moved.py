"""The migration to allauth: addresses count as confirmed, and devices of django-otp go on."""

import base64
import hashlib
from importlib import import_module

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection

from tests.support.operators import person
from tests.support.page import page
from tests.support.second_factor import App, log_in

pytestmark = pytest.mark.django_db
migration = import_module("sasweb.migrations.0001_accounts")
OLD_TABLES = """
CREATE TABLE otp_totp_totpdevice (
    id serial PRIMARY KEY, user_id integer, confirmed boolean, key varchar(80),
    step smallint DEFAULT 30, t0 bigint DEFAULT 0, digits smallint DEFAULT 6
);
CREATE TABLE otp_static_staticdevice (id serial PRIMARY KEY, user_id integer, confirmed boolean);
CREATE TABLE otp_static_statictoken (id serial PRIMARY KEY, device_id integer, token varchar(16));
"""
SECRET = bytes(range(20))
CODE = "abcd-efgh-ijkl-mnop"


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def old_device(user, secret=SECRET, *, confirmed=True):
    run(
        "INSERT INTO otp_totp_totpdevice (user_id, confirmed, key) VALUES (%s, %s, %s)",
        user.pk, confirmed, secret.hex(),
    )  # fmt: skip


def old_code(user, code):
    stored = base64.b64encode(hashlib.sha256(code.replace("-", "").encode()).digest()[:12]).decode()
    run("INSERT INTO otp_static_staticdevice (user_id, confirmed) VALUES (%s, true)", user.pk)
    run(
        "INSERT INTO otp_static_statictoken (device_id, token)"
        " SELECT max(id), %s FROM otp_static_staticdevice", stored,
    )  # fmt: skip


def move():
    with connection.schema_editor() as editor:
        migration.verify_addresses(apps, editor)
        migration.move_second_factors(apps, editor)


def test_device_and_recovery_codes_go_on():
    run(OLD_TABLES)
    ada = person("ada", "operate")
    old_device(ada, b"x" * 20)
    old_device(ada)
    old_code(ada, CODE)
    move()
    app = App(base64.b32encode(SECRET).decode())
    client, answer = log_in(ada)
    assert answer["Location"] == "/login/code/"
    assert client.post("/login/code/", {"code": app.code()}).status_code == 303
    assert client.get("/ops/").status_code == 200
    shown = page(client.get("/login/second-factor/codes/"))
    assert shown.only("[data-left]")["data-left"] == "1"
    assert not shown.all("[data-recovery-codes]")
    client, _ = log_in(ada)
    digest = Authenticator.objects.get(type="recovery_codes").data["migrated_codes"][0]
    assert client.post("/login/code/", {"code": digest}).status_code == 422
    assert client.post("/login/code/", {"code": CODE.upper()}).status_code == 303
    client, _ = log_in(ada)
    assert client.post("/login/code/", {"code": CODE}).status_code == 422


def test_device_that_was_never_confirmed_is_left_behind():
    run(OLD_TABLES)
    ada = person("ada", "operate")
    old_device(ada, confirmed=False)
    old_code(ada, CODE)
    move()
    assert not Authenticator.objects.exists()


def test_database_without_the_old_tables_is_migrated_and_twice_is_as_once():
    ada = person("ada@example.org", email="Ada@example.org")
    person("eve")
    move()
    assert not Authenticator.objects.exists()
    assert EmailAddress.objects.get().user == ada
    move()
    address = EmailAddress.objects.get()
    assert (address.email, address.verified, address.primary) == ("Ada@example.org", True, True)
    assert User.objects.count() == 2
