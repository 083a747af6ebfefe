"""The workflow of a refund: the money goes back, and its customer is written to."""

from orchestration.api import Step, Workflow, field

from .refunds import REFUND_WORKFLOW

REFUND = Workflow(
    # not one of `owner_application`: the public web process may post those
    name=REFUND_WORKFLOW,
    label=lambda data: str(data["number"]),
    contact=field("email"),
    value={"amount": field("amount"), "currency": field("currency")},
    personal=[field("mail", "text"), field("mail", "html")],
    not_by_hand="A refund belongs to an order: its page in the admin has the form.",
    steps=[
        Step(
            name="refund_payment",
            agent="payment",
            action="refund",
            when=field("amount"),  # not if all goes back to a gift card
            request={"payment": field("payment"), "amount": field("amount")},
            refused={"*": "error"},  # staff decide: the customer cannot mend it
            irreversible="the money is on its way to the customer",
        ),
        Step(
            name="tell_customer",
            agent="notification",
            action="send",
            after=["refund_payment"],
            request={"to": field("email"), "mail": field("mail")},
            irreversible="the letter is in the customer's inbox",
        ),
    ],
)
