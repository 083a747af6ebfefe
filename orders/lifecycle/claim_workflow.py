"""The workflow of a claim for a lost parcel; what follows for the money is in `claims`."""

from orchestration.api import Step, Workflow, field, key, loaded, result

from .claims import BOOK, CLAIM_WORKFLOW, DECIDE, DECISION, load, record
from .message import APPLICATION
from .returns import ROLE

AGAIN = result(DECIDE, "send_again")
RESERVE = "reserve_again"

CLAIM = Workflow(
    name=CLAIM_WORKFLOW,
    record=record,
    load=load,
    owner_application=APPLICATION,
    label=lambda data: str(data["number"]),
    contact=field("email"),
    value={"amount": field("amount"), "currency": field("currency")},
    personal=[field("mail", "text"), field("mail", "html")],
    not_by_hand="A claim belongs to an order: its customer makes it on the order's page.",
    steps=[
        Step(
            name=DECIDE,
            person=ROLE,
            request={
                "parcel": field("parcel"),
                "goods": field("goods"),
                "amount": field("amount"),
                "currency": field("currency"),
            },
            returns=DECISION,
            ends_within=14 * 86_400,
        ),
        Step(
            name=RESERVE,
            agent="inventory",
            action="reserve",
            after=[DECIDE],
            when=AGAIN,
            request={"order": field("order"), "lines": field("lines")},
            refused={"*": "error"},  # staff decide: the customer is not asked
            undo="release",
            undo_request={"key": key(RESERVE)},
        ),
        Step(
            name=BOOK,
            agent="shipping",
            action="book",
            after=[RESERVE],
            when=AGAIN,
            request={
                "order": field("order"),
                "reservation": result(RESERVE, "id"),
                "address": loaded("address"),
            },
            refused={"*": "error"},
            undo="cancel",
            undo_request={"key": key(BOOK)},
        ),
        Step(
            name="tell_customer",
            agent="notification",
            action="send",
            after=[BOOK],
            when=AGAIN,
            request={
                "order": field("order"),
                "to": field("email"),
                "mail": field("mail"),
                "parcel": result(BOOK, "tracking"),
            },
            irreversible="the letter is in the customer's inbox",
        ),
    ],
)
