"""Labels of returns, and goods that come back, at the sandbox."""

from tests.support.partner_calls import Shop
from tests.support.sandbox import restarted, served

OF = {"order": "o-1", "return": "r-1"}


def goods(quantity):
    return {"order": "o-1", "lines": [{"sku": "mug", "quantity": quantity}]}


@served
async def test_return_has_one_label_at_a_time(client):
    shop = Shop(client)
    first = await shop.done("shipping", "label", OF, key="k-1")
    assert await shop.done("shipping", "label", OF, key="k-1") == first
    second = await shop.do("shipping", "label", OF, key="k-2")
    assert (second.outcome, second.code) == ("rejected", "label_exists")
    assert await shop.done("shipping", "void", {"key": "k-1"}) == {"effect": "void"}
    assert await shop.done("shipping", "void", {"key": "k-1"}) == {"effect": "none"}
    assert (await shop.done("shipping", "label", OF, key="k-3"))["id"] != first["id"]


@served
async def test_label_that_comes_after_its_undo_is_refused(client):
    shop = Shop(client)
    assert await shop.done("shipping", "void", {"key": "k-1"}) == {"effect": "none"}
    assert (await shop.do("shipping", "label", OF, key="k-1")).outcome == "rejected"


@served
async def test_goods_that_come_back_are_on_hand_again(client):
    shop = Shop(client)
    await shop.booked()
    before = await client.stock()
    assert before["shipped"] == 2
    back = await shop.done("inventory", "restock", goods(1), key="k-b")
    assert await shop.done("inventory", "restock", goods(1), key="k-b") == back
    assert await client.stock() == {
        **before, "shipped": 1, "on_hand": before["on_hand"] + 1,
    }  # fmt: skip
    more = await shop.do("inventory", "restock", goods(2), key="k-m")
    assert (more.outcome, more.code) == ("rejected", "more_than_sent")
    assert (await client.stock())["shipped"] == 1


@served
async def test_goods_that_were_not_sent_do_not_come_back(client):
    shop = Shop(client)
    await shop.reserved()
    refused = await shop.do("inventory", "restock", goods(1))
    assert (refused.outcome, refused.code) == ("rejected", "more_than_sent")


def test_labels_and_goods_are_known_after_a_restart(tmp_path):
    async def first(client):
        shop = Shop(client)
        await shop.booked()
        await shop.done("shipping", "label", OF, key="k-1")
        await shop.done("inventory", "restock", goods(1), key="k-b")

    async def then(client):
        shop = Shop(client)
        assert (await client.stock())["shipped"] == 1
        assert (await shop.do("shipping", "label", OF, key="k-2")).code == "label_exists"
        assert (await shop.do("inventory", "restock", goods(2), key="k-m")).code == "more_than_sent"

    restarted(tmp_path, first, then)
