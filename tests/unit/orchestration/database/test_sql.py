import pytest

from orchestration.database.sql import as_array, storable


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


@pytest.mark.parametrize("texts", [["\0"], ["a", "b\0c"], ["a\0", "b"]])
def test_array_of_texts_with_a_character_that_postgres_cannot_store_is_refused(texts):
    with pytest.raises(ValueError, match="NUL"):
        as_array(texts)
