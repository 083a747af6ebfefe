"""Keeping a search of the list of tasks, and forgetting it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST

from ...models import SavedView
from ...models.saved import MOST_VIEWS
from ..forms.search import View
from ..queries import search_query
from .permissions import OPERATE, SEE_PERSONAL, SHARE, requires, user_of
from .responses import or_404


@require_POST
@requires(OPERATE)
def save_view(request: HttpRequest) -> HttpResponse:
    """Keep a search under a name; one of the same name and owner is replaced."""
    user = user_of(request)
    form = View(request.POST)
    wrong = [error for errors in form.errors.values() for error in errors]
    query = str(form.cleaned_data.get("query", ""))
    if not wrong:
        wrong += search_query.read({"q": query}, personal=user.has_perm(SEE_PERSONAL)).problems
    mine = SavedView.objects.filter(owner=user)
    if not wrong and mine.exclude(name=form.cleaned_data["name"]).count() >= MOST_VIEWS:
        wrong = [f"You have {MOST_VIEWS} views, which is the most: delete one first."]
    if wrong:
        for text in wrong:
            messages.error(request, f"The view was not saved. {text}")
    else:
        name = form.cleaned_data["name"]
        shared = form.cleaned_data["shared"] and user.has_perm(SHARE)
        SavedView.objects.update_or_create(
            owner=user, name=name, defaults={"query": query, "shared": shared}
        )
        messages.success(request, f"The view “{name}” was saved.")
    return _to_list(query)


@require_POST
@requires(OPERATE)
def forget_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a view of one's own."""
    view = or_404(SavedView.objects.filter(id=view_id, owner=user_of(request)).first())
    view.delete()
    messages.success(request, f"The view “{view.name}” was deleted.")
    return _to_list(view.query)


def _to_list(query: str) -> HttpResponse:
    asked = QueryDict(mutable=True)
    if query:
        asked["q"] = query
    return HttpResponseRedirect(
        f"{reverse('ops:tasks')}?{asked.urlencode()}".rstrip("?"), status=303
    )
