"""The one log: a line an event, which begins with the name of the process."""

import logging

from . import env


class Line(logging.Formatter):
    """Adds `process_name`: the variable PROCESS as it is now, as a process may go on in a fork."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line."""
        record.process_name = env.text("PROCESS", "manage")
        return super().formatMessage(record)
