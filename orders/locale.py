"""In which language and at which time the shop speaks: as the visitor's browser asks, or they choose."""

from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation

STAFF = ("/ops/", "/admin/", "/api/", "/login/")  # English, and the site's own time
ZONE = "zone"  # the cookie in which static/live.js tells the browser's time zone


class ShopLocale(LocaleMiddleware):
    """Language by the visitor's choice or `Accept-Language`; time zone by the browser's word."""

    def process_request(self, request: HttpRequest) -> None:
        """Activate both for the shop's pages; staff get one language, which the logs speak too."""
        if request.path.startswith(STAFF):
            translation.activate("en")
            request.LANGUAGE_CODE = "en"
            timezone.deactivate()
            return
        super().process_request(request)
        zone = _zone(request.COOKIES.get(ZONE, ""))
        if zone is None:
            timezone.deactivate()
        else:
            timezone.activate(zone)


def _zone(name: str) -> ZoneInfo | None:
    """Return the time zone of that name, or None: a cookie may say anything."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, LookupError, OSError):
        return None
