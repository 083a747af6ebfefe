import pytest

from orchestration.sql import storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("as it is, ä 日", "as it is, ä 日"),
        (" a\0b\n", "ab"),
        ("half \ud800 of one", "half ? of one"),
    ],
)
def test_what_the_database_cannot_store_is_left_out(text, stored):
    assert storable(text) == stored
