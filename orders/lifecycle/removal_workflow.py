"""The workflow of a removal: its units are for sale again, and its customer is written to."""

from orchestration.api import Step, Workflow, field

from .removing import REMOVAL_WORKFLOW

REMOVAL = Workflow(
    # not one of `owner_application`: the public web process may post those
    name=REMOVAL_WORKFLOW,
    label=lambda data: str(data["number"]),
    contact=field("email"),
    value={"amount": field("amount"), "currency": field("currency")},
    personal=[field("mail", "text"), field("mail", "html")],
    not_by_hand="A removal belongs to an order: its customer removes something on the order's page.",
    steps=[
        Step(
            name="release_goods",
            agent="inventory",
            action="release_part",
            when=field("lines"),  # none of gift cards
            request={
                "order": field("order"),
                "reservation": field("reservation"),
                "lines": field("lines"),
            },
            refused={"*": "error"},  # staff decide: the customer cannot mend it
            irreversible="the goods may be sold to others by now",
        ),
        Step(
            name="tell_customer",
            agent="notification",
            action="send",
            request={"order": field("order"), "to": field("email"), "mail": field("mail")},
            irreversible="the letter is in the customer's inbox",
        ),
    ],
)
