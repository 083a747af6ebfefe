"""The page of a day's figures in the admin, and the same as CSV."""

import csv
from datetime import date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from .figures import AMOUNTS, COUNTS, LONGEST, Figures, by_day, names, totals
from .money import as_decimal
from .times import shop_zone

USUAL = 7  # days
YEARS = range(2000, 2200)  # of what a shop's figures are of, far from the ends of the calendar


class RangeForm(forms.Form):
    """The first and the last day."""

    first = forms.DateField(label="From", widget=forms.DateInput({"type": "date"}))
    last = forms.DateField(label="Until", widget=forms.DateInput({"type": "date"}))

    def clean(self) -> dict[str, Any]:
        """Refuse a range that ends before it begins, or is too long to add up at once."""
        first, last = self.cleaned_data.get("first"), self.cleaned_data.get("last")
        if not (first and last):
            return self.cleaned_data
        in_order = timedelta(0) <= last - first < timedelta(days=LONGEST)
        if not (in_order and {first.year, last.year} <= set(YEARS)):
            raise ValidationError(
                f"Choose up to {LONGEST} days, the first one before the last.", code="range"
            )
        return self.cleaned_data


def figures(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Return the figures of the days asked for, or of the last week."""
    today = timezone.localtime(timezone=shop_zone()).date()
    usual = {"first": today - timedelta(days=USUAL - 1), "last": today}
    asked = {name: request.GET.get(name) or day.isoformat() for name, day in usual.items()}
    form = RangeForm(asked)
    days = by_day(form.cleaned_data["first"], form.cleaned_data["last"]) if form.is_valid() else []
    if request.GET.get("format") == "csv" and form.is_valid():
        return _as_csv(days, form.cleaned_data["first"], form.cleaned_data["last"])
    shown = {
        **context,
        "title": "A day's figures",
        "form": form,
        "days": days,
        "totals": totals(days),
        "zone": shop_zone().key,
        "query": f"?first={asked['first']}&last={asked['last']}&format=csv"
        if form.is_valid()
        else "",
    }
    status = 200 if form.is_valid() else 422
    return TemplateResponse(request, "admin/orders/order/figures.html", shown, status=status)


def _as_csv(days: list[Figures], first: date, last: date) -> HttpResponse:
    """Return a row for each day and currency, amounts as people write them."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="figures-{first}-{last}.csv"'
    writer = csv.writer(response)
    writer.writerow(names())
    for day in days:
        counts = [getattr(day, name) for name in COUNTS]
        amounts = [as_decimal(getattr(day, name), day.currency) for name in AMOUNTS]
        writer.writerow([day.day, day.currency, *counts, *amounts])
    return response
