"""The views that a user can choose from: their own, and those that others share."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import BooleanField, ExpressionWrapper, Q

from ...models import SavedView
from .search_grammar import terms
from .search_query import read

MOST = 30


@dataclass(frozen=True, kw_only=True)
class ViewLink:
    """A saved view as a link; `current` if it is what is looked at."""

    view: SavedView
    own: bool
    current: bool


def saved_views(user: User, query: str, *, personal: bool) -> Sequence[ViewLink]:
    """Return the views of a user, own ones first; `query` is what is looked at.

    Without `personal`, those of others that may name whom tasks are for are left out.
    """
    views = SavedView.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner")
    views = views.annotate(own=ExpressionWrapper(Q(owner=user), BooleanField()))
    return [
        ViewLink(view=view, own=view.owner_id == user.pk, current=view.query == query)
        for view in views.order_by("-own", "name", "id")[:MOST]
        if personal or view.owner_id == user.pk or not _names_user(view.query)
    ]


def _names_user(query: str) -> bool:
    """Return whether a search may have a contact in it: as such, or as a plain word."""
    search = read({"q": query}, personal=True)
    names = {term.name for term in terms(search.tree)}
    return bool(names & {"", "contact"} or search.problems)
