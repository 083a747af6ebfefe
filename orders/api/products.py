"""The catalogue: what is sold, at which price."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import translation
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from orders import models
from orders.currency import shop_currency
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import LANGUAGES
from orders.lifecycle.plain_text import VISIBLE

from .auth import Token
from .problems import only
from .schema_fields import Amount, Currency
from .scopes import ANY

router = Router(tags=["Products"])


class Product(Schema):
    """A product on sale."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"sku": "coffee-morning",
                 "names": {"en": "Morning House Blend", "de": "Hausmischung"},
                 "unit_price": 950, "currency": shop_currency(), "availability": "plenty",
                 "delivery": "parcel", "released_at": None, "made_within_days": None,
                 "page": "https://shop.example/products/morning-house-blend/"}
            ]
        }
    )  # fmt: skip

    sku: Annotated[str, Field(description="What an order's line names it by.")]
    names: Annotated[dict[str, str], Field(description="The name by language.")]
    unit_price: Amount
    currency: Currency
    availability: Annotated[
        Literal["plenty", "few", "none"],
        Field(
            description="As the shop shows it; the inventory decides when an order is processed."
        ),
    ]
    delivery: Annotated[
        Literal["parcel", "gift_card"],
        Field(description="A gift card's code is sent by e-mail once the order is paid."),
    ]
    released_at: Annotated[
        datetime | None,
        Field(description="An order with it waits until then, and is paid then. Null: no wait."),
    ]
    made_within_days: Annotated[
        int | None, Field(description="It is made to order. Null: it is in stock.")
    ]
    page: Annotated[str, Field(description="Its page in the shop.")]


class Products(Schema):
    """A page of the catalogue, sorted by SKU."""

    products: list[Product]
    next: Annotated[str | None, Field(description="URL of the next page, if any.")]


@router.get(
    "",
    auth=Token(ANY),
    summary="List the products",
    operation_id="listProducts",
    response=Products,
)
def list_products(
    request: HttpRequest,
    limit: Annotated[int, Query(ge=1, le=200, description="Products per page.")] = 100,
    cursor: Annotated[
        str,
        Query(
            max_length=MAX_LENGTH["sku"], pattern=VISIBLE, description="Opaque; taken from `next`."
        ),
    ] = "",
) -> Mapping[str, Any]:
    """List what is on sale, with today's prices, page by page."""
    only(request, "limit", "cursor")
    rows = models.Product.objects.sold().filter(sku__gt=cursor).order_by("sku")
    products = list(rows[: limit + 1])
    more, page = products[limit:], products[:limit]
    following = urlencode({"limit": limit, "cursor": page[-1].sku}) if more else ""
    here = request.build_absolute_uri(request.path)
    return {
        "products": [_product(request, product) for product in page],
        "next": f"{here}?{following}" if more else None,
    }


def _product(request: HttpRequest, product: models.Product) -> dict[str, Any]:
    return {
        "sku": product.sku,
        "names": {language: _name(product, language) for language in LANGUAGES},
        "unit_price": product.due,
        "currency": product.currency,
        "availability": product.stock,
        "delivery": product.delivery,
        "released_at": product.released_at,
        "made_within_days": product.made_within_days,
        "page": request.build_absolute_uri(product.get_absolute_url()),
    }


def _name(product: models.Product, language: str) -> str:
    with translation.override(language):
        return translation.gettext(product.name)
