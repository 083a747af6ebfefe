"""Accounts for django-allauth: addresses of today's customers, and second factors of django-otp.

The tables of django-otp are read, if this database has them, and left to the former release.
"""

import base64
from datetime import datetime, timezone

from django.conf import settings
from django.db import migrations

BATCH = 1000
# one of several devices is the last that was set up
APPS = """
SELECT DISTINCT ON (user_id) user_id, key FROM otp_totp_totpdevice
WHERE confirmed AND digits = 6 AND step = 30 AND t0 = 0
ORDER BY user_id, id DESC
"""
CODES = """
SELECT device.user_id, array_agg(token.token ORDER BY token.id)
FROM otp_static_staticdevice device JOIN otp_static_statictoken token ON token.device_id = device.id
WHERE device.confirmed
GROUP BY device.user_id
"""


def verify_addresses(apps, schema_editor):
    """Count the address of each account as confirmed: it was in use before letters confirmed one."""
    User = apps.get_model("auth", "User")
    EmailAddress = apps.get_model("account", "EmailAddress")
    known = EmailAddress.objects.values("user")
    rows = []
    for id_, email in User.objects.exclude(email="").exclude(id__in=known).values_list("id", "email").iterator():
        rows.append(EmailAddress(user_id=id_, email=email, verified=True, primary=True))
        if len(rows) == BATCH:
            EmailAddress.objects.bulk_create(rows)
            rows = []
    EmailAddress.objects.bulk_create(rows)


def move_second_factors(apps, schema_editor):
    """Make rows of allauth from devices and recovery codes: apps go on, and so do digests of codes."""
    connection = schema_editor.connection
    tables = set(connection.introspection.table_names())
    if "otp_totp_totpdevice" not in tables:
        return
    Authenticator = apps.get_model("mfa", "Authenticator")
    done = set(Authenticator.objects.values_list("user_id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(APPS)
        secrets = {user: base64.b32encode(bytes.fromhex(key)).decode() for user, key in cursor.fetchall()}
        codes = {}
        if "otp_static_staticdevice" in tables:
            cursor.execute(CODES)
            codes = dict(cursor.fetchall())
    rows = []
    for user, secret in secrets.items():
        if user in done:
            continue
        rows.append(Authenticator(user_id=user, type="totp", data={"secret": secret}))
        if user in codes:
            # shown when they were made: they are not shown again
            seen = datetime.now(timezone.utc).timestamp()
            data = {"used_mask": 0, "migrated_codes": codes[user], "viewed_at": seen}
            rows.append(Authenticator(user_id=user, type="recovery_codes", data=data))
    Authenticator.objects.bulk_create(rows, batch_size=BATCH)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("usersessions", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(verify_addresses, migrations.RunPython.noop),
        migrations.RunPython(move_second_factors, migrations.RunPython.noop),
    ]
