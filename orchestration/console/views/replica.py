"""Pages that read from a replica of the database, if there is one."""

from functools import wraps

from django.db import Error
from django.http import HttpRequest, HttpResponse

from ...database import replica, sql
from .permissions import P, View

BEHIND = "sas.behind"  # in a request's META: by how many seconds what the page reads is behind


def from_replica(view: View[P]) -> View[P]:
    """Read a page from the replica; from the primary while the replica is unavailable.

    It belongs below `requires`, as who may see the page is not for the replica to say.
    """

    @wraps(view)
    def read(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            with replica.reading() as behind:
                request.META[BEHIND] = int(behind)
                return view(request, *args, **kwargs)
        except replica.Away:
            pass
        except Error as error:  # it went away, or what it replays was in the way of the query
            if not (sql.is_unavailable(error) or sql.is_busy(error)):
                raise
        request.META.pop(BEHIND, None)
        return view(request, *args, **kwargs)

    return read
