"""What of an order is hidden from operators who may not see personal data."""

import pytest

from orchestration.people.redaction import HIDDEN, Redactor
from orders.lifecycle import paying
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW

LETTER = {"text": "Dear Ms Byron, thank you for your order.", "html": "<p>Dear Ms Byron</p>"}


@pytest.mark.parametrize("number", ["12345-67890", "ABCDE-FGHJK", "7KQ4M-9XD2P"])
@pytest.mark.parametrize(
    ("workflow", "name"), [(WORKFLOW, "confirmation"), (EMAIL_WORKFLOW, "mail")]
)
def test_words_of_a_subject_are_shown_wherever_they_occur(workflow, name, number):
    mail = {**LETTER, "subject": f"Your order {number} is confirmed"}
    redactor = Redactor(workflow, {name: mail})
    assert redactor(paying.PLAINLY_DECLINED) == paying.PLAINLY_DECLINED
    assert redactor.input[name] == {
        "subject": mail["subject"], "text": HIDDEN, "html": HIDDEN,
    }  # fmt: skip
