"""The Django admin of this project: its models in groups that say what they are for."""

from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import ValidationError
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, reverse

# By the models' labels; what is named nowhere stays under its own application, at the end.
GROUPS = {
    "Thresholds": (
        "orchestration.Policy",
        "orchestration.StepPolicy",
        "orchestration.SupervisorPolicy",
        "orchestration.Schedule",
        "orchestration.FairnessWeight",
        "orchestration.RetentionPolicy",
    ),
    "Catalogue and orders": (
        "orders.Product",
        "orders.StockLevel",
        "orders.StockCorrection",
        "orders.ShippingPrice",
        "orders.TaxRate",
        "orders.DiscountCode",
        "orders.GiftCard",
        "orders.Order",
        "orders.Subscription",
    ),
    "Users and roles": ("auth.User", "auth.Group", "orchestration.AccountTie"),
    "Applications, webhooks and notices": (
        "orchestration.Application",
        "orchestration.ApplicationToken",
        "orchestration.ApplicationRole",
        "orchestration.NotificationChannel",
        "orchestration.Notification",
    ),
    "Records: tasks": (
        "orchestration.Task",
        "orchestration.Step",
        "orchestration.StateStore",
        "orchestration.Wait",
        "orchestration.ExternalId",
        "orchestration.Join",
        "orchestration.Attempt",
        "orchestration.AttemptEvidence",
        "orchestration.Event",
        "orchestration.Submission",
        "orchestration.StatusMessage",
        "orchestration.TaskRequest",
        "orchestration.UndoRequest",
        "orchestration.DeadLetter",
        "orchestration.RemovedTask",
        "orchestration.Export",
    ),
    "Records: incidents and operations": (
        "orchestration.Alert",
        "orchestration.Incident",
        "orchestration.IncidentHit",
        "orchestration.IncidentHour",
        "orchestration.IncidentTally",
        "orchestration.Operation",
        "orchestration.OperationItem",
        "orchestration.SoloAct",
        "orchestration.Hold",
        "orchestration.SavedView",
        "orchestration.AuditRun",
    ),
    "Records: system": (
        "orchestration.Gate",
        "orchestration.Worker",
        "orchestration.Lease",
        "orchestration.ClockJump",
        "orchestration.JumpedTime",
        "orchestration.TaskRollUp",
        "orchestration.StepRollUp",
        "orchestration.GateRollUp",
        "orchestration.RollUpMark",
    ),
    "Records: sign-ins": ("axes.AccessAttempt", "axes.AccessFailureLog", "axes.AccessLog"),
}


class BackOffice(AdminSite):
    """The admin, with the project's name, and its index in groups."""

    site_header = site_title = "Kettlewell · Order processing"
    index_title = "Settings and records"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register a model; an admin of another package is made safe for two people at once, too."""
        from django.contrib.admin.options import ModelAdmin

        from orchestration.console.admin.concurrent_admin import ConcurrentAdmin

        wrapped = admin_class or ModelAdmin
        if not issubclass(wrapped, ConcurrentAdmin):
            wrapped = type(
                wrapped.__name__, (ConcurrentAdmin, wrapped), {"__module__": wrapped.__module__}
            )
        super().register(model_or_iterable, wrapped, **options)

    def login(
        self, request: HttpRequest, _extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead to the one login there is: a second one would be a second place to guess at."""
        # its module has forms of users, which are not there yet when this one is loaded
        from django.contrib.auth.views import redirect_to_login

        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the admin's addresses, with a view on the site only of what has a page there."""
        view = self.admin_view(_view_on_site)
        address = "r/<int:content_type_id>/<path:object_id>/"
        return [path(address, view, name="view_on_site"), *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models that the user may see, in groups instead of by application."""
        applications: list[Any] = super().get_app_list(request, app_label)
        if app_label is not None:
            return applications
        known = {
            f"{application['app_label']}.{model['object_name']}": (application, model)
            for application in applications
            for model in application["models"]
        }
        groups = []
        for name, labels in GROUPS.items():
            pairs = [known.pop(label) for label in labels if label in known]
            if pairs:
                groups.append(_group(name, pairs[0][0], [model for _, model in pairs]))
        left: dict[str, list[Any]] = {}
        for application, model in known.values():
            left.setdefault(application["app_label"], []).append((application, model))
        for pairs in left.values():
            application = pairs[0][0]
            groups.append(_group(application["name"], application, [model for _, model in pairs]))
        return groups


def _view_on_site(request: HttpRequest, content_type_id: int, object_id: str) -> HttpResponse:
    """Lead to the page of a row; Django's own view fails for what has none."""
    from django.contrib.contenttypes.models import ContentType
    from django.contrib.contenttypes.views import shortcut

    try:
        kind = ContentType.objects.get_for_id(content_type_id)
        if hasattr(kind.model_class(), "get_absolute_url"):
            return shortcut(request, content_type_id, object_id)
    except (ContentType.DoesNotExist, DataError, ValidationError, ValueError):
        pass
    raise Http404


def _group(name: str, application: dict[str, Any], models: list[Any]) -> dict[str, Any]:
    # the label is part of the row's id and class: each group has its own
    label = "-".join(name.lower().replace(":", "").replace(",", "").split())
    return {**application, "name": name, "app_label": label, "models": models}


class BackOfficeConfig(SimpleAdminConfig):
    """Puts it in the place of Django's own. Its pages are loaded with the addresses (`urls.py`).

    So workers and supervisors, who show none, start without them: a fifth sooner.
    """

    default_site = "sasweb.back_office.BackOffice"


def environment(request: HttpRequest) -> dict[str, Any]:
    """Return which installation this is, whether staff work here, and whose shop it is."""
    return {
        "environment": settings.ENVIRONMENT,
        "for_staff": settings.FOR_STAFF,
        "seller": settings.SELLER_ADDRESS,
        # the dress of pages that customers and staff share
        "dress": "staff/base.html" if request.path_info.startswith("/login/") else "base.html",
    }
