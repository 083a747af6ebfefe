"""Moments as they are given to commands."""

from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Return the moment that an option gives, in this installation's time zone unless it names one."""
    found = parse_datetime(text)
    if found is None:
        raise ValueError(text)
    return found if timezone.is_aware(found) else timezone.make_aware(found)
