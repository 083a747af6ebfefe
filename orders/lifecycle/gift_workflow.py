"""The letter with the codes of gift cards: they are loaded, and are in no task."""

from orchestration.api import Step, Workflow, field, loaded

from .gift_issue import GIFT_WORKFLOW, load

GIFT = Workflow(
    # not one of `owner_application`, as that of refunds
    name=GIFT_WORKFLOW,
    load=load,
    label=lambda data: str(data["number"]),
    contact=field("email"),
    personal=[field("mail", "text"), field("mail", "html")],
    not_by_hand="A gift card is issued by an order, or in the admin.",
    background=True,
    steps=[
        Step(
            name="send",
            agent="notification",
            action="send",
            request={"to": field("email"), "mail": field("mail"), "codes": loaded("codes")},
            irreversible="the codes are in the customer's inbox",
        ),
    ],
)
