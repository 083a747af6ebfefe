"""Work that comes in parts: each part goes on where the one before it ended."""

from orchestration.models import Attempt, Event


def test_parts_are_asked_for_one_after_the_other(shop, real_bank):
    order = shop.submit("in_parts")
    shop.go()
    assert (order.state, order.result("read")) == ("processing", {"next": "1", "count": 2})
    shop.wait(0.1)
    assert order.result("read") == {"next": "2", "count": 4}
    shop.wait(0.1)
    assert (order.state, order.result("read")) == ("processed", {"next": "", "count": 6})
    assert real_bank.asked == 3
    assert (Attempt.objects.count(), Event.objects.filter(kind="retry").count()) == (1, 0)
