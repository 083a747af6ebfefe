"""Webhooks of services: what an agent's `receive` gets, verifies, and returns."""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any

from django.utils.datastructures import CaseInsensitiveMapping

from ..database import clock
from ..payloads import signatures
from ..payloads.text import READER
from .errors import LONGEST_CODE

MAX_AGE_S = 300.0  # of a webhook, by the time that is signed with it, as Stripe's libraries have it
LONGEST_ID = 200  # characters of an id


class InvalidWebhook(ValueError):
    """A webhook that cannot be read; its sender is answered 400, and its text is for the log only.

    >>> raise InvalidWebhook("it has no event id")
    Traceback (most recent call last):
    ...
    orchestration.agents.webhook.InvalidWebhook: it has no event id
    """


class UnverifiedWebhook(InvalidWebhook):
    """A webhook that is not shown to be its service's own, or is too old; its sender is answered 401.

    >>> raise UnverifiedWebhook("its signature is wrong")
    Traceback (most recent call last):
    ...
    orchestration.agents.webhook.UnverifiedWebhook: its signature is wrong
    """


@dataclass(frozen=True, kw_only=True)
class Reported:
    """How something ended that a service accepted: with a `result`, or `refused` with a code.

    `id` is the service's own id of the event, by which it counts once; `of` its id of what it accepted, the
    `id` of `Later`. Both have at most 200 characters. Raises `InvalidWebhook` otherwise, and unless there is
    either a result or a code.

    >>> Reported(id="evt_1", of="pi_1", result={"charge": "ch_1"}).of
    'pi_1'
    >>> Reported(id="evt_2", of="pi_2", refused="declined", message="no funds").result is None
    True
    """

    id: str
    of: str
    result: Mapping[str, Any] | None = None
    refused: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        """Refuse what could be no report: most of it is the sender's."""
        for name in ("id", "of"):
            value = getattr(self, name)
            if not (isinstance(value, str) and 0 < len(value) <= LONGEST_ID and "\0" not in value):
                raise InvalidWebhook(
                    f"its {name} is {value!r:.60}, not a text of 1 to {LONGEST_ID} characters"
                )
        texts: tuple[object, ...] = (self.refused, self.message)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidWebhook("what it refused, and its message, are not texts")
        if len(self.refused) > LONGEST_CODE:
            raise InvalidWebhook(f"its code has more than {LONGEST_CODE} characters")
        if (self.result is None) == (not self.refused):
            raise InvalidWebhook("it needs either a result or a code")
        if not isinstance(self.result, Mapping | None):
            raise InvalidWebhook(f"its result is a {type(self.result).__name__}, not an object")


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A webhook as it came in: the bytes of its body, and its headers in any case.

    >>> webhook = Webhook(body=b'{"id": "evt_1"}', headers={"X-Event": "paid"})
    >>> webhook.json()["id"], webhook.headers["x-event"]
    ('evt_1', 'paid')
    """

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Have headers found in any case."""
        object.__setattr__(self, "headers", CaseInsensitiveMapping(dict(self.headers)))

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; raise `InvalidWebhook` if it is none."""
        try:
            value = READER.decode(self.body.decode())
        except JSONDecodeError as error:
            raise InvalidWebhook(f"its body is not JSON: {error.msg}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidWebhook(f"its body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidWebhook("its body is not a JSON object")
        return value

    def verify(self, *secrets: str, max_age: float = MAX_AGE_S) -> None:
        """Raise `UnverifiedWebhook` unless a secret signed it, by the Standard Webhooks specification.

        Several secrets are for the time of a change. `max_age` is in seconds, to the past and the future.
        Raises `ValueError` without a secret.
        """
        message, timestamp = self._header("webhook-id"), self._header("webhook-timestamp")
        sent = self._header("webhook-signature").split()
        of = message, timestamp, self.body
        _compare(sent, [signatures.standard(secret, *of) for secret in _usable(secrets)])
        _require_recent(timestamp, max_age)

    def verify_stripe(self, *secrets: str, max_age: float = MAX_AGE_S) -> None:
        """Raise `UnverifiedWebhook` unless a secret signed it, as Stripe does; see `verify`."""
        parts = [
            part.strip().partition("=") for part in self._header("stripe-signature").split(",")
        ]
        timestamp = next((value for name, _, value in parts if name == "t"), "")
        sent = [value for name, _, value in parts if name == "v1"]
        _compare(
            sent, [signatures.stripe(secret, timestamp, self.body) for secret in _usable(secrets)]
        )
        _require_recent(timestamp, max_age)

    def _header(self, name: str) -> str:
        """Return a header; raise `UnverifiedWebhook` if it is missing, or no text that could be signed."""
        value = self.headers.get(name, "")
        if not value or not value.isascii():
            raise UnverifiedWebhook(f"it has no usable header {name}")
        return value


class Receiver:
    """What agents have that take webhooks of their services.

    Write `receive` if the service reports by webhooks what came of what it accepted (`Later`).

    >>> class Bank(HttpAgent):
    ...     name, base_url = "bank", "https://bank.example"
    ...     @classmethod
    ...     def receive(cls, webhook):
    ...         webhook.verify("whsec_c2VjcmV0")
    ...         event = webhook.json()
    ...         return [Reported(id=event["id"], of=event["charge"], result={"id": event["charge"]})]
    """

    @classmethod
    def can_receive(cls) -> bool:
        """Return whether it takes webhooks."""
        return getattr(cls.receive, "__func__", None) is not RECEIVE

    @classmethod
    def receive(cls, webhook: Webhook) -> Iterable[Reported]:
        """Return what a webhook of the service reports; nothing, if it ends nothing.

        It runs in a web process: it verifies the webhook first, makes no call, and changes nothing. Raises
        `UnverifiedWebhook` or `InvalidWebhook`.
        """
        raise NotImplementedError


RECEIVE = vars(Receiver)["receive"].__func__


def _usable(secrets: tuple[str, ...]) -> list[str]:
    """Return the secrets that are set: what is empty signs nothing."""
    usable = [secret for secret in secrets if secret]
    if not usable:
        raise ValueError("there is no secret to verify webhooks by")
    return usable


def _compare(sent: list[str], right: list[str]) -> None:
    """Raise `UnverifiedWebhook` unless a signature is right; the time says nothing of where they differ."""
    matches = [hmac.compare_digest(first, second) for first in sent for second in right]
    if not any(matches):
        raise UnverifiedWebhook("none of its signatures is right")


def _require_recent(timestamp: str, max_age: float) -> None:
    """Raise `UnverifiedWebhook` if a signed time is too far from now, or is none."""
    try:
        age = clock.now() - int(timestamp)
    except ValueError:
        raise UnverifiedWebhook(
            f"its time is {timestamp[:40]!r}, not seconds of Unix time"
        ) from None
    if abs(age) > max_age:
        raise UnverifiedWebhook(f"it is {age:.0f} s old; at most {max_age:.0f} s are allowed")
