"""The example agent that sends letters, to a real SMTP server."""

import asyncio
from email import message_from_bytes
from threading import Thread

import pytest
from aiosmtpd.smtp import SMTP

from docs.examples.smtp_agent import Letters, message_id
from orchestration.testing.contract import AgentContract

LETTER = {"to": "ada@example.org", "subject": "Thanks", "text": "It is on its way."}


class MailServer:
    """A mail server in a thread; it answers each command as it is asked to, and keeps letters."""

    def __init__(self):
        self.letters = []
        self.answers = {}  # command → answer
        self.hangs_up = False  # instead of the answer to a letter that it has taken
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(
            self.loop.create_server(self._session, "127.0.0.1", 0)
        )
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def _session(self):
        return SMTP(self, loop=self.loop, hostname="mail.example.org")

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
        envelope.mail_from = address
        return self.answers.get("MAIL", "250 OK")

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
        envelope.rcpt_tos.append(address)
        return self.answers.get("RCPT", "250 OK")

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's name
        if "DATA" in self.answers:
            return self.answers["DATA"]
        self.letters.append(message_from_bytes(envelope.content))
        if self.hangs_up:
            server.transport.abort()
        return "250 OK"

    def ids(self):
        return [letter["Message-ID"] for letter in self.letters]

    def close(self):
        async def end():
            self.server.close()
            await asyncio.sleep(0)  # connections close
            self.loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self.loop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def server(settings):
    server = MailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    settings.DEFAULT_FROM_EMAIL = "Shop <shop@example.org>"
    yield server
    server.close()


class TestLetters(AgentContract):
    agent, action, payload = Letters, "send", LETTER
    refused_payload = {**LETTER, "subject": "Thanks\nBcc: all@example.org"}
    refusal = "bad_header"
    # a letter cannot be taken back, and no mail server can be asked about it
    test_undo_takes_back_and_may_be_repeated = test_undo_of_what_is_undone_is_done = None
    test_look_up_finds_what_was_done = test_look_up_of_an_unknown_key_finds_nothing = None
    # it speaks no HTTP: see below
    test_unanswered_call_is_in_doubt = test_unreachable_service_did_nothing = None

    @pytest.fixture(autouse=True)
    def _serve(self, server):
        self.server = server

    def standing(self, key, result):
        """Return how many letters a mailbox shows that goes by the Message-ID."""
        return len({number for number in self.server.ids() if number == message_id(key)})

    def ends(self):
        reply = self.perform("send", LETTER, "task:tell:do:1", seconds=5.0)
        return reply.outcome, reply.code

    def test_letter_as_it_arrives(self):
        reply = self.perform("send", {**LETTER, "html": "<p>It is on its way."}, "task:tell:do:1")
        (letter,) = self.server.letters
        assert reply.result == {"id": letter["Message-ID"]}
        assert letter["Message-ID"] == "<task.tell.do.1@example.org>"
        assert (letter["To"], letter["Subject"]) == ("ada@example.org", "Thanks")
        assert [part.get_content_type() for part in letter.walk()] == [
            "multipart/alternative", "text/plain", "text/html"
        ]  # fmt: skip

    def test_letter_without_an_answer_is_in_doubt_and_a_repeat_is_a_second_one(self):
        self.server.hangs_up = True
        assert self.ends() == ("unknown", "connection_lost")
        self.server.hangs_up = False
        assert self.ends() == ("done", "")
        assert self.server.ids() == ["<task.tell.do.1@example.org>"] * 2

    @pytest.mark.parametrize(
        ("command", "answer", "end"),
        [
            ("RCPT", "550 no such user", ("rejected", "recipient_refused")),
            ("RCPT", "451 greylisted", ("transient", "recipient_refused")),
            ("MAIL", "553 not you", ("rejected", "sender_refused")),
            ("MAIL", "452 full", ("transient", "sender_refused")),
            ("DATA", "554 spam", ("rejected", "letter_refused")),
            ("DATA", "421 closing", ("transient", "letter_refused")),
        ],
    )
    def test_answers_of_the_server(self, command, answer, end):
        self.server.answers[command] = answer
        assert self.ends() == end
        assert self.server.letters == []

    def test_server_that_is_away_did_nothing(self, settings):
        settings.EMAIL_PORT = 1
        assert self.ends() == ("transient", "unreachable")
