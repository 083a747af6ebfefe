import pytest

from orchestration.database.sql import storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("as it is, ä 日", "as it is, ä 日"),
        (" a\0b\n", "ab"),
        ("half \ud800 of one", "half ? of one"),
    ],
)
def test_characters_that_postgres_cannot_store_are_removed(text, stored):
    assert storable(text) == stored
