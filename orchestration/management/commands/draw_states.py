"""`manage.py draw_states`: keeps docs/understand/states.md in step with the legal-moves tables."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orchestration.management.state_diagram import drawing


class Command(BaseCommand):
    """Draws the states."""

    help = "Write docs/understand/states.md from the legal-moves tables in orchestration/states.py."
    requires_system_checks = []

    def handle(self, *_: Any, **__: Any) -> None:
        """Write the file and say where."""
        target = Path(settings.BASE_DIR) / "docs" / "understand" / "states.md"
        target.write_text(drawing())
        self.stdout.write(f"wrote {target}")
