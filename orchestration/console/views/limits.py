"""What a user did within a day, beside the limits; and where an act leads that needs another person."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from ...models import Operation
from ...people import limits
from .permissions import person_of


def day_shown(request: HttpRequest) -> limits.Day:
    """Return what the user did alone in the last 24 hours, for `ops/_day.html`."""
    return limits.day_of(person_of(request))


def asked_for(request: HttpRequest, operation: Operation) -> HttpResponse:
    """Lead to an operation that waits for a second person."""
    messages.info(request, "Nothing was changed yet: another user must approve this first.")
    return HttpResponseRedirect(reverse("ops:operation", args=[operation.id]), status=303)
