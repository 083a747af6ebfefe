"""Language and time zone of the shop's pages, by the visitor's choice or browser."""

from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation

from orders.times import visitor_zone

STAFF = ("/ops/", "/admin/", "/api/", "/login/")  # in English and the site's time zone
ZONE = "zone"  # cookie with the browser's time zone, set by static/live.js


class ShopLocale(LocaleMiddleware):
    """Activates language (chosen, or `Accept-Language`) and time zone (cookie, or the shop's)."""

    def process_request(self, request: HttpRequest) -> None:
        """Activate both for the shop's pages; pages of staff stay in English, as the logs."""
        if request.path.startswith(STAFF):
            translation.activate("en")
            request.LANGUAGE_CODE = "en"
            timezone.deactivate()
            return
        super().process_request(request)
        timezone.activate(visitor_zone(request.COOKIES.get(ZONE, "")))
