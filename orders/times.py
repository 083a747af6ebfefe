"""Times as customers read them: in their own zone or the shop's, with the year and the zone."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

ABBREVIATIONS = {"CET": gettext_lazy("CET"), "CEST": gettext_lazy("CEST")}
NO_PLACE = ("UTC", "GMT", "Etc/")  # zones of machines, and of browsers that hide where they are


def shop_zone() -> ZoneInfo:
    """Return the shop's time zone, which letters are written in."""
    return ZoneInfo(settings.SHOP_TIME_ZONE)


def visitor_zone(name: str) -> ZoneInfo:
    """Return the zone that a browser names, or the shop's: the name is untrusted."""
    try:
        return shop_zone() if not name or name.startswith(NO_PLACE) else ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        return shop_zone()


def moment(at: datetime, zone: tzinfo | None = None) -> str:
    """Return a time in a zone, or in the current one: 22 Nov 2026, 06:23 CET."""
    local = timezone.localtime(at, zone)
    return f"{date_format(local, _('j M Y, H:i'))} {_zone_name(local)}"


def _zone_name(local: datetime) -> str:
    name = local.tzname() or ""
    return f"GMT{name}" if name.startswith(("+", "-")) else str(ABBREVIATIONS.get(name, name))
