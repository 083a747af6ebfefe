"""What operators keep for themselves, and for each other."""

from django.conf import settings
from django.db import models

from .fields import DatabaseNow

LONGEST_VIEW = 500  # characters of a search
MOST_VIEWS = 50  # of one person


class SavedView(models.Model):
    """A person's saved search of the list of tasks, by name; `shared` with all others."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=LONGEST_VIEW, blank=True)
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        constraints = [
            # saving under a name that one has replaces what was there
            models.UniqueConstraint(fields=["owner", "name"], name="view_once"),
        ]
        permissions = [("share", "Can share saved views")]

    def __str__(self) -> str:
        return self.name
