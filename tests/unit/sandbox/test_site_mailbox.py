"""The mailbox: its list, its filters and its safety."""

import pytest

from sandbox.site import mailbox
from tests.support.sandbox import MAIL, Client, page, served, text_of


@served
async def test_mailbox_shows_the_newest_first_and_filters(client: Client) -> None:
    for number, to in enumerate(["ada@example.org", "bob@example.org", "Ada@Example.org"]):
        await client.made("/mail/messages", MAIL | {"to": to, "subject": f"Number {number}"})
    shown = await page(client, "/mail/")
    assert shown.index("Number 2") < shown.index("Number 1") < shown.index("Number 0")
    assert 'data-count="3"' in shown
    of_ada = await page(client, "/mail/?to=ADA%40")
    assert "Number 0" in of_ada
    assert "Number 2" in of_ada
    assert "Number 1" not in of_ada
    assert 'id="no-mail"' in await page(client, "/mail/?to=carl")
    messages = (await client.get("/mail/messages?to=bob"))["messages"]
    assert [message["subject"] for message in messages] == ["Number 1"]


@served
async def test_mailbox_is_paged(client: Client) -> None:
    for number in range(mailbox.PAGE_SIZE + 2):
        await client.made("/mail/messages", MAIL | {"subject": f"Number {number}."})
    first = await page(client, "/mail/?to=a")
    assert "Number 2." in first
    assert "Number 1." not in first
    older = await page(client, "/mail/?to=a&before=3")
    assert '/mail/?to=a&amp;before=3"' in first
    assert "Number 1." in older
    assert "Number 2." not in older
    assert "before=" not in older
    assert (await client.call("GET", "/mail/?before=x")).status == 400


@served
async def test_recalled_message_is_marked(client: Client) -> None:
    ref = await client.made("/mail/messages", MAIL, "k-1")
    assert text_of(await page(client, "/mail/"), f"{ref}-state") == ""
    await client.made("/mail/undo", {"key": "k-1"})
    assert text_of(await page(client, "/mail/"), f"{ref}-state") == "Recalled"


@served
async def test_html_message_is_shown_in_a_frame(client: Client) -> None:
    html = '<html><head></head><body onload="x()"><a href="http://a.example">A</a></body></html>'
    ref = await client.made("/mail/messages", MAIL | {"html": html})
    plain = await client.made("/mail/messages", MAIL)
    messages = (await client.get("/mail/messages"))["messages"]
    assert [message.get("html") for message in messages] == [html, None]
    shown = await page(client, "/mail/")
    assert "onload=&quot;x()&quot;" in shown
    assert shown.count("<iframe") == 1
    alone = await client.call("GET", f"/mail/html?id={ref}")
    assert alone.headers["Content-Security-Policy"].startswith("sandbox allow-popups")
    assert "allow-scripts" not in alone.headers["Content-Security-Policy"]
    assert b'<head><base target="_blank"></head>' in alone.raw
    for missing in (plain, "msg_0"):
        assert (await client.call("GET", f"/mail/html?id={missing}")).status == 404
    bad = await client.post("/mail/messages", MAIL | {"html": 1})
    assert (bad.status, bad.body["error"]["field"]) == (400, "html")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a <b> & c", "a &lt;b&gt; &amp; c"),
        (
            "See http://a.at/?y=1&z=2.",
            'See <a href="http://a.at/?y=1&amp;z=2" rel="noreferrer">http://a.at/?y=1&amp;z=2</a>.',
        ),
        (
            "(https://a.example/), b",
            '(<a href="https://a.example/" rel="noreferrer">https://a.example/</a>), b',
        ),
        ("javascript:alert(1)", "javascript:alert(1)"),
        (
            'http://a"onclick=x',
            '<a href="http://a" rel="noreferrer">http://a</a>&quot;onclick=x',
        ),
    ],
)
def test_url_becomes_a_link(text: str, html: str) -> None:
    assert mailbox.linked(text) == html
