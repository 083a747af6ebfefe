"""The errors that faults of a run explain."""

import psycopg2

from orchestration.database import sql

from .threads import Crashed

DISK_FULL = "53100"  # the SQLSTATE of a commit that fails


def others(error: BaseException) -> list[BaseException]:
    """Return the errors in an error that no fault of the run explains."""
    return [leaf for leaf in _leaves(error) if not _is_expected(leaf)]


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _is_expected(error: BaseException) -> bool:
    """Return whether an error is that of a fault of the run, or of a lock that was not waited for."""
    if isinstance(error, Crashed) or sql.is_unavailable(error) or sql.is_busy(error):  # type: ignore[arg-type]
        return True
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, psycopg2.Error):
        cause = cause.__cause__
    return isinstance(cause, psycopg2.Error) and cause.pgcode == DISK_FULL
