"""The second factor: apps (TOTP), passkeys, and recovery codes for a lost device, as rows of allauth.

Of recovery codes that were shown only a digest is kept; each is good once.
"""

import base64
import hashlib
import logging

from allauth.mfa.models import Authenticator
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest

from orders.rate_limit import Limit

logger = logging.getLogger(__name__)
# By account, from all addresses: who has come here knows the password. With three codes good at a time
# a hundred tries a day find one in nine years on average. The role of the shop reaches no count of staff.
TRIES = Limit("staff-second-factor", most=10, seconds=600)
TRIES_A_DAY = Limit("staff-second-factor-day", most=100, seconds=86_400)
OF_CUSTOMERS = Limit("second-factor", most=10, seconds=600)
OF_CUSTOMERS_A_DAY = Limit("second-factor-day", most=100, seconds=86_400)
# A code of an app is good for three steps of 30 seconds, in every process once: allauth notes it in one.
USES = Limit("staff-second-factor-code", most=1, seconds=90)
OF_CUSTOMERS_USES = Limit("second-factor-code", most=1, seconds=90)
DIGITS = 6  # of a code of an app; a longer one is a recovery code
RECOVERY = str(Authenticator.Type.RECOVERY_CODES)


def of(user: User) -> dict[int, str]:
    """Return the kinds of what a user has set up, recovery codes included, by id; each page of staff asks."""
    return dict(Authenticator.objects.filter(user=user).values_list("id", "type"))


def devices(user: User) -> list[int]:
    """Return the ids of a user's apps and passkeys."""
    return [id_ for id_, kind in of(user).items() if kind != RECOVERY]


def may_try(user: User, *, works_here: bool) -> Limit | None:
    """Count a try; return the limit that it is over, if any."""
    limits = (TRIES, TRIES_A_DAY) if works_here else (OF_CUSTOMERS, OF_CUSTOMERS_A_DAY)
    over = [limit for limit in limits if not limit.allows(str(user.pk))]
    return over[-1] if over else None


def is_new(user: User, code: str, *, works_here: bool) -> bool:
    """Note that a code of an app was shown; return whether it is the first time."""
    return (USES if works_here else OF_CUSTOMERS_USES).allows(f"{user.pk}:{code}")


def compared(code: str) -> str:
    """Return a code as it is compared: one of an app without spaces, of a recovery code its digest."""
    code = "".join(code.split()).replace("-", "").lower()
    return code if len(code) == DIGITS else digest(code)


def failed(request: HttpRequest, user: User) -> None:
    """Have a wrong code counted as a wrong password is."""
    logger.warning("a wrong second factor for the user with id %s", user.pk)
    user_login_failed.send(
        sender=__name__, credentials={"username": user.get_username()}, request=request
    )


def remove(user: User) -> None:
    """Remove all that a user has set up."""
    Authenticator.objects.filter(user=user).delete()


def keep_digests(authenticator: Authenticator) -> list[str]:
    """Return recovery codes that are about to be shown, and keep nothing of them but digests."""
    codes: list[str] = authenticator.wrap().get_unused_codes()
    data = {**authenticator.data, "migrated_codes": [digest(code) for code in codes]}
    data.pop("seed", None)  # all codes can be made from it
    authenticator.data = data
    authenticator.save(update_fields=["data"])
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def recovery_codes_left(user: User) -> int:
    """Return how many recovery codes a user has not used."""
    rows = Authenticator.objects.filter(user=user, type=RECOVERY)
    return sum(len(row.wrap().get_unused_codes()) for row in rows)


def record(by: User, user: User, words: str) -> None:
    """Write into the history of a user what was done about the second factor."""
    LogEntry.objects.log_actions(by.pk, [user], CHANGE, words, single_object=True)


def digest(code: str) -> str:
    """Return the stored digest of a recovery code: with 80 random bits it needs no slow hash."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()[:12]).decode()
