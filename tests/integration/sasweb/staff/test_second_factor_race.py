"""A code of the second factor that two browsers send at once."""

import pytest

from tests.support.operators import person
from tests.support.second_factor import log_in, with_app
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_code_that_is_sent_twice_at_once_is_taken_once():
    ada = person("ada", "operate")
    app = with_app(ada)
    browsers = [log_in(ada)[0] for _ in range(2)]
    sent = {"code": app.code()}
    answers = at_once(
        {
            number: lambda browser=browser: browser.post("/login/code/", sent).status_code
            for number, browser in enumerate(browsers)
        }
    )
    assert sorted(answers.values()) == [303, 422]
