"""Days in the shop's time zone, by the database's clock."""

from datetime import date
from typing import cast

from django.db import connection
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from orders.times import shop_zone

TODAY = "SELECT (statement_timestamp() AT TIME ZONE %s)::date"


def today() -> date:
    """Return the day on which the shop is (one query)."""
    with connection.cursor() as cursor:
        cursor.execute(TODAY, [shop_zone().key])
        return cast("date", cursor.fetchall()[0][0])


def in_words(day: date) -> str:
    """Return a day as the active language writes it."""
    return date_format(day, _("j F Y"))
