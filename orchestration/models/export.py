"""What people took out of the dashboard as a file."""

from django.db import models

from .fields import DatabaseNow


class ExportFormat(models.TextChoices):
    """The format of an exported file."""

    CSV = "csv", "CSV"
    JSON = "json", "JSON"


class Export(models.Model):
    """One export of a list: written before its first row is sent. Rows are only added."""

    actor = models.CharField(max_length=150)
    what = models.CharField(max_length=20, help_text="Which list.")
    query = models.TextField(blank=True, help_text="What it was narrowed to.")
    format = models.CharField(max_length=4, choices=ExportFormat)
    columns = models.TextField(help_text="The columns, parted by commas.")
    personal = models.BooleanField(help_text="Whether personal data were included.")
    rows = models.PositiveIntegerField(help_text="How many were found when it began.")
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = [models.Index(fields=["-at", "-id"], name="export_recent")]

    def __str__(self) -> str:
        return f"{self.what} exported by {self.actor}: {self.rows} rows"
