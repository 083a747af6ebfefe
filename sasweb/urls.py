"""The addresses: the shop, the operators' dashboard, the admin, and the health checks."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth import views as auth
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import include, path
from django.views.i18n import set_language
from django_rq.urls import get_admin_urlpatterns, get_api_urlpatterns

from orchestration.views import metrics
from orders.api import site as orders_api

from . import health
from .login import Login

View = Callable[..., HttpResponseBase]


def superusers_only(view: View) -> View:
    """Refuse anybody but superusers: the queues' pages show and delete whatever is in them."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not request.user.is_superuser:
            raise PermissionDenied
        return admin.site.admin_view(view)(request, *args, **kwargs)

    return guarded


admin.autodiscover()

# its JSON and metrics are open to any member of staff unless they are guarded, too
queue_pages = [*get_admin_urlpatterns(), *get_api_urlpatterns()]
for page in queue_pages:
    page.callback = superusers_only(page.callback)

handler400 = "orders.views.failure.bad_request"
handler500 = "orders.views.failure.server_error"
urlpatterns = [
    path("", include("orders.urls")),
    path("api/", orders_api.urls),
    path("ops/", include("orchestration.urls")),
    path("admin/", admin.site.urls),
    path("django-rq/", include((queue_pages, "django_rq"), namespace="django_rq")),
    path("login/", Login.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("livez", health.alive, name="livez"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
