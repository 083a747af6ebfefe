"""The addresses as the staff's pages see them: allauth's names lead below /login/.

The door has requests of staff use these; all others use `sasweb/urls.py`. Django finds a name's last address.
"""

from sasweb.urls import handler400, handler403, handler404, handler500, login_pages
from sasweb.urls import urlpatterns as all_pages

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]
urlpatterns = [*all_pages, *login_pages]
