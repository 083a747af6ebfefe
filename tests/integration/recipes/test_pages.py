"""A list that comes in pages is read to its end, a page at a time."""

from orchestration.models import Attempt, Event


def test_pages_are_read_one_after_the_other(shop, real_bank):
    order = shop.submit("counted")
    shop.go()
    assert (order.state, order.result("count")) == ("processing", {"next": "b", "count": 2})
    shop.wait(0.1)
    assert order.result("count") == {"next": "d", "count": 4}
    shop.wait(0.1)
    assert (order.state, order.result("count")) == ("processed", {"next": "", "count": 5})
    assert real_bank.asked == 3
    assert (Attempt.objects.count(), Event.objects.filter(kind="retry").count()) == (1, 0)
