"""The mailer."""

from tests.support.sandbox import MAIL, Client, served


@served
async def test_mail_is_listed_by_order(client: Client) -> None:
    sent = await client.post("/mail/messages", MAIL, "m-1")
    assert sent.status == 202
    await client.made("/mail/messages", MAIL | {"order": "o-2"})
    await client.made("/mail/undo", {"key": "m-1"})
    (message,) = (await client.get("/mail/messages?order=o-1"))["messages"]
    assert message == MAIL | {"id": sent.body["id"], "status": "recalled"}
    assert len((await client.get("/mail/messages"))["messages"]) == 2
