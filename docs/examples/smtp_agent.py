"""An agent that sends letters by SMTP: a file to copy into your application.

    register(Letters)
    Step(name="tell", agent="letters", action="send", irreversible="a letter cannot be taken back",
         request={"to": field("email"), "subject": field("subject"), "text": field("text")})

It sends by Django's e-mail settings. SMTP has no idempotency keys. The key becomes the Message-ID: a
repeat has the same one, by which some mailboxes show a letter once, and people can see that it is the same.
No server promises that. So where the connection breaks after the letter was handed over, it may arrive
twice; with `key_memory` as short as `time_allowed` it is not repeated, and an operator decides.
"""

import asyncio
import smtplib
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection

from orchestration.api import Agent, Call, Fault, Rejected, Transient, Unknown, action

TEXT = {"type": "string", "minLength": 1}
LETTER = {
    "type": "object",
    "properties": {"to": TEXT, "subject": TEXT, "text": TEXT, "html": TEXT},
    "required": ["to", "subject", "text"],
    "additionalProperties": False,
}
SENT = {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}
AT_ONCE = 10  # connections of one worker


class Letters(Agent):
    """Hands letters to a mail server, one recipient each."""

    name = "letters"
    slots = AT_ONCE
    # the mail server's own timeouts are long; a letter can wait
    policy = {"time_allowed": 60.0, "call_timeout": 50.0, "tries": 1, "window": AT_ONCE}

    @action(accepts=LETTER, returns=SENT)
    async def send(self, call: Call) -> dict[str, Any]:
        """Send {to, subject, text, html?}; returns {id}: the Message-ID."""
        return {"id": await asyncio.to_thread(_send, call)}


def message_id(key: str) -> str:
    """Return the Message-ID for a key, at the domain of the sender."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    return f"<{key.replace(':', '.')}@{domain}>"


def _send(call: Call) -> str:
    letter = call.payload
    known = message_id(call.key)
    mail = EmailMultiAlternatives(
        letter["subject"], letter["text"], to=[letter["to"]], headers={"Message-ID": known}
    )
    if html := letter.get("html"):
        mail.attach_alternative(html, "text/html")
    mail.connection = get_connection(timeout=call.timeout)
    try:
        mail.message()  # what cannot be written is refused before anything is sent
    except ValueError as error:  # a line break in an address or a subject
        raise Rejected("bad_header", str(error)) from error
    try:
        mail.connection.open()
    except OSError as error:  # all of smtplib's are; nothing was sent
        raise Transient("unreachable", str(error)) from error
    try:
        mail.send()
    except (smtplib.SMTPException, OSError) as error:
        raise _fault(error) from error
    finally:
        mail.connection.close()
    return known


def _fault(error: Exception) -> Fault:
    """Return what an error of a connected server means.

    An answer to a command says that the letter was not taken: permanently (5xx) or for now (4xx). Without
    an answer, it may have been.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
        return _refusal("recipient_refused", code, text)
    if isinstance(error, smtplib.SMTPSenderRefused):
        return _refusal("sender_refused", error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPDataError):
        return _refusal("letter_refused", error.smtp_code, error.smtp_error)
    return Unknown("connection_lost", f"{type(error).__name__}: {error}")


def _refusal(code: str, number: int, text: bytes | str) -> Fault:
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    kind = Rejected if 500 <= number < 600 else Transient
    return kind(code, f"{number} {words}")
