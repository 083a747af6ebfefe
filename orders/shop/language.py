"""Language and time zone of the shop's pages, by the visitor's choice or browser."""

from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation

STAFF = ("/ops/", "/admin/", "/api/", "/login/")  # in English and the site's time zone
ZONE = "zone"  # cookie with the browser's time zone, set by static/live.js


class ShopLocale(LocaleMiddleware):
    """Activates language (chosen, or `Accept-Language`) and time zone (cookie)."""

    def process_request(self, request: HttpRequest) -> None:
        """Activate both for the shop's pages; pages of staff stay in English, as the logs."""
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
    """Return the time zone of a name, or None: the cookie is untrusted."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, LookupError, OSError):
        return None
