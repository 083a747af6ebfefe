"""Times as customers read them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from orders.times import moment, shop_zone, visitor_zone

AT = datetime(2026, 11, 22, 5, 23, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "english", "german"),
    [
        ("Europe/Berlin", "22 Nov 2026, 06:23 CET", "22. Nov. 2026, 06:23 MEZ"),
        ("Asia/Tokyo", "22 Nov 2026, 14:23 JST", "22. Nov. 2026, 14:23 JST"),
        ("America/Sao_Paulo", "22 Nov 2026, 02:23 GMT-03", "22. Nov. 2026, 02:23 GMT-03"),
    ],
)
def test_moment_has_the_year_and_the_zone(zone, english, german):
    for language, expected in (("en", english), ("de", german)):
        with translation.override(language):
            assert moment(AT, ZoneInfo(zone)) == expected


@pytest.mark.parametrize(
    "name", ["", "UTC", "Etc/UTC", "GMT", "../../etc/passwd", "Europe", "x" * 500, "a\0b"]
)
def test_zone_without_a_place_is_the_shops(name, settings):
    settings.SHOP_TIME_ZONE = "Europe/Lisbon"
    assert visitor_zone(name) == shop_zone() == ZoneInfo("Europe/Lisbon")
    assert visitor_zone("Asia/Tokyo") == ZoneInfo("Asia/Tokyo")
