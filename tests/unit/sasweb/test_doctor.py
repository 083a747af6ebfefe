"""What the doctor finds in settings, addresses and disks."""

import json
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.checks import ERROR, INFO, WARNING

from orchestration.assurance.doctor.subjects import Unanswered
from sasweb import doctor
from sasweb import settings as project
from sasweb.stack.folders import PROJECT

SANDBOX = "http://127.0.0.1:8900"
PRODUCTION = {
    "ENVIRONMENT": "production", "HTTPS": True, "SITE_URL": "https://shop.example",
    "ALLOWED_HOSTS": ["shop.example"], "SANDBOX_URL": SANDBOX, "PAYMENT_SECRET_KEY": "sk_live_x",
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend", "WEBHOOKS_ALLOW_PRIVATE": False,
    "DEFAULT_FROM_EMAIL": "The shop <shop@shop.example>",
    "SECOND_FACTOR": True, "STAFF_IDLE_MINUTES": 30, "STAFF_SESSION_HOURS": 12,
    "MESSAGE_KEYS": ["a key"], "UNSIGNED_MESSAGES": False, "PAYMENT_WEBHOOK_SECRETS": ["whsec_x"],
    "STORAGES": {"staticfiles": {"BACKEND": f"{StaticFilesStorage.__module__}.StaticFilesStorage"}},
    **dict.fromkeys(doctor.PARTNERS, "https://partner.example"),
}  # fmt: skip


def findings(**changes):
    values = SimpleNamespace(**PRODUCTION | changes)
    checks = [check for check in doctor.of_settings.checks if check is not doctor.django]
    return {(check.__name__, message.level) for check in checks for message in check(values)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"HTTPS": False}, {("https", ERROR)}),
        ({"SECOND_FACTOR": False}, {("staff_logins", ERROR)}),
        (
            {"SECOND_FACTOR": False, "ENVIRONMENT": "demo"},
            {("staff_logins", INFO), ("environment", INFO)},
        ),
        ({"STAFF_IDLE_MINUTES": 0}, {("staff_logins", ERROR)}),
        ({"STAFF_SESSION_HOURS": 0}, {("staff_logins", ERROR)}),
        ({"SITE_URL": "https://localhost:8000"}, {("site_url", ERROR)}),
        ({"SITE_URL": "https://other.example"}, {("site_url", ERROR)}),
        ({"SITE_URL": "http://shop.example"}, {("site_url", WARNING)}),
        ({"ALLOWED_HOSTS": ["*"]}, {("allowed_hosts", WARNING)}),
        ({"MAIL_URL": SANDBOX}, {("partners", ERROR)}),
        ({"PAYMENT_SECRET_KEY": "sk_test_x"}, {("partners", ERROR)}),
        ({"PAYMENT_WEBHOOK_SECRETS": []}, {("partners", WARNING)}),
        ({"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend"}, {("email", ERROR)}),
        ({"DEFAULT_FROM_EMAIL": "alerts@localhost"}, {("email", ERROR)}),
        ({"MESSAGE_KEYS": []}, {("message_keys", ERROR)}),
        ({"UNSIGNED_MESSAGES": True}, {("message_keys", WARNING)}),
        ({"WEBHOOKS_ALLOW_PRIVATE": True}, {("webhooks", ERROR)}),
        ({"ENVIRONMENT": "demo"}, {("environment", INFO)}),
        ({"ENVIRONMENT": "demo", "HTTPS": False}, {("environment", INFO), ("https", INFO)}),
    ],
)
def test_production_with_one_fault_has_that_finding_only(changes, expected):
    assert findings(**changes) == expected


def test_static_files_that_were_not_collected(tmp_path):
    values = {"STORAGES": project.STORAGES, "STATIC_ROOT": tmp_path}
    assert findings(**values) == {("static_files", ERROR)}
    (tmp_path / "staticfiles.json").touch()
    assert findings(**values) == set()


def test_weak_key_and_debug_are_errors_with_remedies(settings):
    settings.SECRET_KEY, settings.DEBUG = "short", True
    bad = {message.id: message for message in doctor.django(settings) if message.level == ERROR}
    assert set(bad) == {"security.W009", "security.W018"}
    assert all(message.hint for message in bad.values())
    settings.HTTPS, settings.SESSION_COOKIE_SECURE = True, False
    assert "security.W012" in {message.id for message in doctor.django(settings)}


def test_connect_reaches_what_listens_only():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        doctor.connect("127.0.0.1", port, "X_URL")
    with pytest.raises(Unanswered, match=f"X_URL: 127.0.0.1:{port}"):
        doctor.connect("127.0.0.1", port, "X_URL")


@pytest.mark.parametrize(
    ("free", "levels"), [(3 << 30, []), (1 << 30, [WARNING]), (9 << 20, [ERROR])]
)
def test_disk_that_is_nearly_full(free, levels):
    assert [message.level for message in doctor.of_disk.judge(free)] == levels


def test_doctor_ends_in_time_when_everything_hangs(tmp_path):
    """Servers that accept connections and say nothing; a partner whose name has no address."""
    with (
        socket.socket(socket.AF_UNIX) as postgres,
        socket.create_server(("127.0.0.1", 0)) as redis,
    ):
        postgres.bind(str(tmp_path / ".s.PGSQL.5432"))
        postgres.listen()
        environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql://x@/x?host={tmp_path}",
            "REDIS_URL": f"redis://127.0.0.1:{redis.getsockname()[1]}",
            "PAYMENT_URL": "http://partner.invalid",
            "ENVIRONMENT": "production",
        }
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "manage.py", "doctor", "--json", "--seconds", "5"],
            cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
    report = json.loads(done.stdout)
    ids = {finding["id"] for finding in report["findings"]}
    assert done.returncode == 2, done.stderr
    assert {"database.unreachable", "redis.unreachable", "PAYMENT_URL.unreachable"} <= ids
    assert "settings.https" in ids
    assert report["seconds"] < 8
    assert took < 30
