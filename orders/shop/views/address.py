"""The fields of an address, as the chosen country has them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from orders.shop.forms import AddressForm


@never_cache
@sensitive_post_parameters()
@csrf_exempt  # it changes nothing, and must work with a token from before a sign-in
@require_POST  # what is typed in belongs in no address, and so in no log
def fields(request: HttpRequest) -> HttpResponse:
    """Return the fields that follow the country, with what was typed in."""
    form = AddressForm(initial=request.POST.dict())
    return render(request, "shop/_address_fields.html", {"form": form})
