"""The addresses that a project includes at its root: the dashboard, the metrics, and a login.

The login is Django's own, with the admin's page. A project that has another one includes
`orchestration.dashboard.urls` below /ops/ instead, and names its addresses `login` and `logout`.
"""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from .views.metrics import metrics

urlpatterns = [
    path("ops/", include("orchestration.dashboard.urls")),
    path("metrics", metrics, name="metrics"),
    path(
        "login/",
        LoginView.as_view(template_name="admin/login.html", next_page="ops:overview"),
        name="login",
    ),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
