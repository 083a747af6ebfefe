"""The addresses: the shop, the operators' dashboard, the admin, and the health checks."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from orchestration.console.views.metrics import metrics
from orders.api import app as orders_api
from orders.shop.views import account

from . import health, request_metrics
from .login import Login
from .staff import forgotten

admin.autodiscover()

handler400 = "orders.shop.views.errors.bad_request"
handler403 = "orders.shop.views.errors.forbidden"
handler404 = "orders.shop.views.errors.not_found"
handler500 = "orders.shop.views.errors.server_error"
login_pages = [
    path("login/", Login.as_view(), name="account_login"),
    path("login/", include("sasweb.accounts.urls")),
]
# these read no table of the engine: they are all that a web process for the shop alone serves
urlpatterns = [
    path("", include("orders.shop.urls")),
    path("account/", include("sasweb.accounts.urls")),
    path("account/sign-in/", account.sign_in, name="account_login"),
    path("account/check-mail/", account.check_mail, name="account_email_verification_sent"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("livez", health.alive, name="livez"),
    path("readyz", health.ready, name="readyz"),
]
if settings.FOR_STAFF:
    urlpatterns = [
        *login_pages,
        *urlpatterns,
        path("api/", orders_api.urls),
        path("hooks/", include("orchestration.applications.hook_urls")),
        path("ops/", include("orchestration.console.urls")),
        path("admin/", admin.site.urls),
        path("login/", Login.as_view(), name="login"),
        path("login/forgotten/", forgotten.Forgotten.as_view(), name="staff_password_forgotten"),
        path(
            "login/forgotten/<uidb64>/<token>/",
            forgotten.Reset.as_view(),
            name="staff_password_reset",
        ),
        path(
            "login/set-up/",
            RedirectView.as_view(url="/login/second-factor/app/", query_string=True),
        ),
        path("metrics", metrics, {"others": request_metrics.collectors}, name="metrics"),
    ]
