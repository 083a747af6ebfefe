"""What operators find orders by, besides what the engine knows: typed numbers, names, parcels."""

import re
from collections.abc import Mapping, Sequence

from django.contrib.postgres.search import SearchQuery, SearchVector

from orchestration.api import Found
from orders.models import Order

from .message import BASE32, as_typed

MOST = 300  # orders of one word: more are too many to look through
SHORTEST_NAME = 3  # characters
SHORTEST_PARCEL = 4
LETTERS = re.compile(r"[^\W\d_]+")
NAME = re.compile(rf"{LETTERS.pattern}(?:['\u2019. -]+{LETTERS.pattern})*\.?")
NAMES = SearchVector("name", config="simple")  # as in the index order_by_name


def find(words: Sequence[str], personal: bool) -> Mapping[str, Found]:
    """Return what is found by each word: at most two queries each, by an index."""
    named = _references_by_name(words) if personal else {}
    whole = _number("".join(words)) if len(words) > 1 else ""
    found = {}
    for word in words:
        numbers = [whole] if len(whole) == 11 else [_number(word)]
        by_name, parcels = named.get(word, []), _references_by_parcel(word)
        found[word] = Found(
            labels=[number for number in numbers if number],
            references=[*by_name[:MOST], *parcels[:MOST]],
            more=max(len(by_name), len(parcels)) > MOST,
        )
    return found


def _number(text: str) -> str:
    """Return the number, or the beginning of one, that a text may be."""
    number = as_typed(text).rstrip("-")
    likely = 4 <= len(number) <= 11 and set(number) <= {*BASE32, "-"}
    return number if likely else ""


def _references_by_name(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the orders by the words of a name: those with all of them, then those with each."""
    names = [word for word in words if len(word) >= SHORTEST_NAME and _parts(word)]
    together = _named(names) if len(names) > 1 else []
    return {word: together[:MOST] or _named([word]) for word in names}


def _named(words: Sequence[str]) -> list[str]:
    query = " & ".join(f"{part}:*" for word in words for part in _parts(word))
    named = Order.objects.annotate(words=NAMES).order_by()
    found = named.filter(words=SearchQuery(query, config="simple", search_type="raw"))
    return [str(id_) for id_ in found.values_list("id", flat=True)[: MOST + 1]]


def _parts(word: str) -> list[str]:
    """Return the words of a name in a text that is one; none if it has digits or signs."""
    return LETTERS.findall(word) if NAME.fullmatch(word) else []


def _references_by_parcel(word: str) -> list[str]:
    if len(word) < SHORTEST_PARCEL or "@" in word:
        return []
    found = Order.objects.filter(parcel__startswith=word.upper(), parcel__gt="").order_by()
    return [str(id_) for id_ in found.values_list("id", flat=True)[: MOST + 1]]
