"""Static files under names of their content, where one that is missing takes no page down."""

import logging
from functools import cache

from whitenoise.storage import CompressedManifestStaticFilesStorage

logger = logging.getLogger(__name__)


class StaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # it has no types
    """Whitenoise's storage; a file that is not in its manifest keeps its name, and the page its answer."""

    def stored_name(self, name: str) -> str:
        """Return the name under which a file is served."""
        try:
            return str(super().stored_name(name))
        except ValueError as error:
            _log_once(name, str(error))
            return name


@cache
def _log_once(name: str, reason: str) -> None:
    logger.error("the static file %s is missing: %s Did collectstatic run?", name, reason)
