"""The workflow of a return: label, parcel, inspection; what follows for the money is in `returns`."""

from orchestration.api import Step, Workflow, field, key, result

from .message import APPLICATION
from .returns import (
    BACK,
    INSPECT,
    INSPECTION,
    LABEL,
    LABELLED,
    RETURN_WORKFLOW,
    ROLE,
    SENT_WITHIN,
    record,
)

RETURN = Workflow(
    name=RETURN_WORKFLOW,
    record=record,
    owner_application=APPLICATION,
    label=lambda data: str(data["number"]),
    contact=field("email"),
    value={"amount": field("amount"), "currency": field("currency")},
    personal=[field("mail", "text"), field("mail", "html")],
    not_by_hand="A return belongs to an order: its customer asks for it on the order's page.",
    time_allowed=SENT_WITHIN * 2.0,
    steps=[
        Step(
            name=LABEL,
            agent="shipping",
            action="label",
            request={"order": field("order"), "return": field("return")},
            refused={"*": "error"},  # staff decide: the customer cannot mend it
            undo="void",
            undo_request={"key": key(LABEL)},
        ),
        Step(
            name="send_label",
            agent="notification",
            action="send",
            after=[LABEL],
            request={
                "order": field("order"),
                "to": field("email"),
                "mail": field("mail"),
                "parcel": result(LABEL, "tracking"),
            },
            undo=None,  # another letter says that the label is no longer valid
        ),
        Step(
            name=BACK,
            signal=BACK,
            after=["send_label"],
            ends_within=SENT_WITHIN,
            remind=LABELLED,
            late="undo",
        ),
        Step(
            name=INSPECT,
            person=ROLE,
            after=[BACK],
            request={
                "goods": field("goods"),
                "reason": field("reason"),
                "exchange": field("exchange", default=None),
                "amount": field("amount"),
                "currency": field("currency"),
            },
            returns=INSPECTION,
            ends_within=14 * 86_400,
        ),
        Step(
            name="restock_goods",
            agent="inventory",
            action="restock",
            after=[INSPECT],
            when=result(INSPECT, "restock"),
            request={"order": field("order"), "lines": field("lines")},
            refused={"*": "error"},
            irreversible="the goods are on the shelf again",
        ),
    ],
)
