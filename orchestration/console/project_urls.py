"""The addresses that a project includes at its root: the dashboard, webhooks, the metrics, and a login.

The login is Django's own, with the admin's page. A project that has another one includes
`orchestration.console.urls` below /ops/ instead, and names its addresses `login` and `logout`.
"""

from importlib.util import find_spec

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

urlpatterns = [
    path("ops/", include("orchestration.console.urls")),
    path("hooks/", include("orchestration.applications.hook_urls")),
    path(
        "login/",
        LoginView.as_view(template_name="admin/login.html", next_page="ops:overview"),
        name="login",
    ),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
if find_spec("prometheus_client"):
    from .views.metrics import metrics

    urlpatterns.append(path("metrics", metrics, name="metrics"))
