"""Moments as they are given to commands."""

from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Return the moment that an option gives, in this installation's time zone unless it names one."""
    parsed = parse_datetime(text)
    if parsed is None:
        raise ValueError(text)
    return parsed if timezone.is_aware(parsed) else timezone.make_aware(parsed)
