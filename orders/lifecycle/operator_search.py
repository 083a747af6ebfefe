"""Search for operators beyond the engine's own fields: order numbers, names, parcels."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import connection

from orchestration.api import Found
from orders.models import Order, Parcel

from .numbers import BASE32, as_typed

MOST = 300  # orders of one word: more are too many to look through
SHORTEST_BEGINNING = 3  # characters: shorter words of a name are whole ones
SHORTEST_PARCEL = 4
FORMS: tuple[Literal["NFC"], Literal["NFD"]] = (
    "NFC",
    "NFD",
)  # a name may be written in either; both look the same
NAMES = SearchVector("name", config="simple")  # as in the index order_by_name
# the words of texts as the index has them, which is true of names in any script
WORDS = "SELECT tsvector_to_array(to_tsvector('simple', text)) FROM unnest(%s) text"


def find(words: Sequence[str], personal: bool) -> Mapping[str, Found]:
    """Return the matches of each word: at most two indexed queries each."""
    named = _references_by_name(words) if personal else {}
    whole = _number("".join(words)) if len(words) > 1 else ""
    matches = {}
    for word in words:
        numbers = [whole] if len(whole) == 11 else [_number(word)]
        by_name, parcels = named.get(word, []), _references_by_parcel(word)
        matches[word] = Found(
            labels=[number for number in numbers if number],
            references=[*by_name[:MOST], *parcels[:MOST]],
            more=max(len(by_name), len(parcels)) > MOST,
        )
    return matches


def named(text: str) -> list[str]:
    """Return the ids of orders whose customer's name has all words of a text, MOST and one at most."""
    return _named([text])


def _number(text: str) -> str:
    """Return the number, or the beginning of one, that a text may be."""
    number = as_typed(text).rstrip("-")
    likely = 4 <= len(number) <= 11 and set(number) <= {*BASE32, "-"}
    return number if likely else ""


def _references_by_name(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the orders of customers whose names have all the words, else each word.

    What has digits may be a number beside a name; and a name may have digits.
    """
    letters = [word for word in words if not any(map(str.isdigit, word))]
    for together in (words, letters):
        if len(together) > 1 and (references := _named(together)):
            each = {word: _named([word]) for word in words if word not in together}
            return {**each, **dict.fromkeys(together, references[:MOST])}
    return {word: _named([word]) for word in words}


def _named(texts: Sequence[str]) -> list[str]:
    query = _query(" ".join(texts))
    if not query:
        return []
    with_words = Order.objects.annotate(words=NAMES).order_by()
    orders = with_words.filter(words=SearchQuery(query, config="simple", search_type="raw"))
    return [str(id_) for id_ in orders.values_list("id", flat=True)[: MOST + 1]]


def _query(text: str) -> str:
    """Return the condition on the words of a name: all of a text, in either form of its letters."""
    forms = list(dict.fromkeys(unicodedata.normalize(form, text) for form in FORMS))
    with connection.cursor() as cursor:
        cursor.execute(WORDS, [forms])
        parts = [" & ".join(map(_part, words)) for (words,) in cursor.fetchall() if words]
    return " | ".join(f"({part})" for part in parts)


def _part(word: str) -> str:
    """Return the condition that a name has a word, or, of a longer one, its beginning."""
    quoted = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(word) >= SHORTEST_BEGINNING else f"'{quoted}'"


def _references_by_parcel(word: str) -> list[str]:
    if len(word) < SHORTEST_PARCEL or "@" in word:
        return []
    number = word.upper()
    alone = Order.objects.filter(parcel__startswith=number, parcel__gt="").order_by()
    several = Parcel.objects.filter(tracking__startswith=number, tracking__gt="").order_by()
    orders = alone.values_list("id", flat=True).union(several.values_list("order", flat=True))
    return [str(id_) for id_ in orders[: MOST + 1]]
