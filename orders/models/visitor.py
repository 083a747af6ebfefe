"""What the shop knows of who visits it: an address, a cart, recent tries."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Profile(models.Model):
    """A customer's usual address."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)
    name = models.CharField(max_length=100)
    street = models.CharField(max_length=120)
    postcode = models.CharField(max_length=20)
    city = models.CharField(max_length=80)
    country = models.CharField(max_length=2)
    region = models.CharField(max_length=80, blank=True, db_default="")

    def __str__(self) -> str:
        return self.name


class Throttle(models.Model):
    """A count of recent tries; `orders/rate_limit.py` counts and deletes."""

    key = models.CharField(
        max_length=100, primary_key=True, help_text="The kind of try and a hash of its origin."
    )
    count = models.PositiveIntegerField()
    until = models.DateTimeField(db_index=True, help_text="When the count is reset.")

    def __str__(self) -> str:
        return self.key


class Visitor(models.Model):
    """What a browser's visitor has; `orders/visitors.py` reads and changes it."""

    key = models.UUIDField(primary_key=True, editable=False, help_text="The cookie's value.")
    content = models.JSONField(default=dict, help_text="The cart, and the ids of orders.")
    changed_at = models.DateTimeField(db_default=Now(), db_index=True)  # old ones are removed

    def __str__(self) -> str:
        return str(self.key)
