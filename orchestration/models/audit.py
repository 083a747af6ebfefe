"""What the auditor found, run by run."""

from django.db import models

from .fields import DatabaseNow


class AuditRun(models.Model):
    """One run of the audit: how much it looked at, and every violation it found."""

    started_at = models.DateTimeField(db_default=DatabaseNow())
    ended_at = models.DateTimeField(null=True)
    by = models.CharField(max_length=150)
    since = models.DateTimeField(
        null=True, help_text="It looked at what changed since then; empty: at everything."
    )
    until = models.DateTimeField(
        null=True, help_text="The next run by itself looks at what changed since then."
    )
    tasks = models.PositiveIntegerField(default=0, help_text="Tasks checked.")
    violations = models.JSONField(
        default=list, help_text="[{invariant, reference, problem, remedy}]"
    )

    class Meta:
        indexes = [models.Index(fields=["-started_at"], name="audit_recent")]

    def __str__(self) -> str:
        return f"audit of {self.started_at:%F %T}: {len(self.violations)} violations"
