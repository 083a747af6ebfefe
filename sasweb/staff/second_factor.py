"""The second factor: codes of an authenticator app (TOTP), and recovery codes for a lost device.

Devices are rows of django-otp. Of recovery codes only a digest is kept; each is good once.
"""

import base64
import hashlib
import logging
import secrets
import time

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.http import HttpRequest
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from orders.rate_limit import Limit

logger = logging.getLogger(__name__)
# By account, from all addresses: who has come here knows the password. With three codes good at a time
# a hundred tries a day find one in nine years on average.
TRIES = Limit("staff-second-factor", most=10, seconds=600)
TRIES_A_DAY = Limit("staff-second-factor-day", most=100, seconds=86_400)
CODES = 10
DIGITS = 6
NAME = "authenticator app"


def devices(user: User) -> list[int]:
    """Return the ids of a user's devices; each page of staff asks."""
    return list(TOTPDevice.objects.filter(user=user, confirmed=True).values_list("id", flat=True))


def may_try(user: User) -> Limit | None:
    """Count a try; return the limit that it is over, if any."""
    over = [limit for limit in (TRIES, TRIES_A_DAY) if not limit.allows(str(user.pk))]
    return over[-1] if over else None


def check(request: HttpRequest, user: User, code: str) -> int | None:
    """Return the id of the device that a code, or recovery code, belongs to; None if it is wrong."""
    code = "".join(code.split()).replace("-", "").lower()
    with transaction.atomic():  # two requests with one code: the second one waits, and is refused
        device = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=True).first()
        if device and _is_good(device, code):
            return int(device.pk)
    logger.warning("a wrong second factor for the user with id %s", user.pk)
    user_login_failed.send(
        sender=__name__, credentials={"username": user.get_username()}, request=request
    )
    return None


def _is_good(device: TOTPDevice, code: str) -> bool:
    if len(code) == DIGITS:
        return bool(device.verify_token(code))
    recovery = StaticDevice.objects.select_for_update().filter(user=device.user).first()
    return bool(recovery and recovery.verify_token(_digest(code)))


def new_secret() -> str:
    """Return a secret for a device that is to be set up, in hexadecimal."""
    return secrets.token_hex(20)


def picture(user: User, secret: str) -> str:
    """Return the QR code that an app scans, as the address of an image."""
    import segno  # for this page alone

    code = segno.make(TOTPDevice(user=user, key=secret).config_url, error="m", micro=False)
    return str(code.svg_data_uri(scale=5, border=4, dark="#000", light="#fff", omitsize=False))


def typed(secret: str) -> str:
    """Return a secret in the form that is typed into an app without a scanner."""
    text = base64.b32encode(bytes.fromhex(secret)).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


@transaction.atomic
def set_up(user: User, secret: str, code: str) -> int | None:
    """Make a device a user's only one; return its id, or None if the code is not its."""
    User.objects.select_for_update().get(pk=user.pk)  # one at a time
    code = "".join(code.split())
    totp = TOTP(bytes.fromhex(secret))
    totp.time = time.time()
    if not (code.isdecimal() and totp.verify(int(code), tolerance=1)):
        return None
    remove(user)
    values = {"key": secret, "drift": totp.drift, "last_t": totp.t()}
    device = TOTPDevice.objects.create(user=user, name=NAME, confirmed=True, **values)
    made: int = device.pk
    return made


@transaction.atomic
def remove(user: User) -> None:
    """Remove a user's devices, and their recovery codes."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()


@transaction.atomic
def new_recovery_codes(user: User) -> list[str]:
    """Replace a user's recovery codes; return the new ones, which are shown once."""
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="recovery codes")
    codes = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(CODES)]
    StaticToken.objects.bulk_create(
        StaticToken(device=device, token=_digest(code)) for code in codes
    )
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def record(by: User, user: User, words: str) -> None:
    """Write into the history of a user what was done about the second factor."""
    LogEntry.objects.log_actions(by.pk, [user], CHANGE, words, single_object=True)


def recovery_codes_left(user: User) -> int:
    """Return how many recovery codes a user has not used."""
    return int(StaticToken.objects.filter(device__user=user).count())


def _digest(code: str) -> str:
    """Return the stored digest of a code: with 80 random bits it needs no slow hash."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()[:12]).decode()
