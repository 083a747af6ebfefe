"""The addresses: the shop, the operators' dashboard, the admin, and the health checks."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.i18n import set_language

from orchestration.console.views.metrics import metrics
from orders.api import app as orders_api

from . import health, request_metrics
from .login import Login
from .staff import forgotten, pages

admin.autodiscover()

handler400 = "orders.shop.views.errors.bad_request"
handler403 = "orders.shop.views.errors.forbidden"
handler404 = "orders.shop.views.errors.not_found"
handler500 = "orders.shop.views.errors.server_error"
# these read no table of the engine: they are all that a web process for the shop alone serves
urlpatterns = [
    path("", include("orders.shop.urls")),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("livez", health.alive, name="livez"),
    path("readyz", health.ready, name="readyz"),
]
if settings.FOR_STAFF:
    urlpatterns += [
        path("api/", orders_api.urls),
        path("hooks/", include("orchestration.applications.hook_urls")),
        path("ops/", include("orchestration.console.urls")),
        path("admin/", admin.site.urls),
        path("login/", Login.as_view(), name="login"),
        path("login/code/", pages.code, name="second_factor_code"),
        path("login/set-up/", pages.set_up, name="second_factor_set_up"),
        path("login/second-factor/", pages.own, name="second_factor"),
        path("login/forgotten/", forgotten.Forgotten.as_view(), name="staff_password_forgotten"),
        path(
            "login/forgotten/<uidb64>/<token>/",
            forgotten.Reset.as_view(),
            name="staff_password_reset",
        ),
        path("metrics", metrics, {"others": request_metrics.collectors}, name="metrics"),
    ]
