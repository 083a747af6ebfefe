"""The workflows of the shop: steps, their agents, order and requests."""

from collections.abc import Sequence

from django.conf import settings

from orchestration.api import (
    Status,
    Step,
    Workflow,
    done,
    field,
    first,
    item,
    key,
    loaded,
    not_,
    passed,
    receive_status,
    register,
    register_audit,
    register_external_view,
    result,
)

from .agents.error_codes import TOO_RISKY
from .agents.inventory import Inventory
from .agents.notification import PARCEL, Notification
from .agents.payment import Payment
from .agents.risk import ROLE, Decision
from .agents.shipping import REFUSED, Courier, Shipping
from .agents.workshop import WORKSHOP
from .api import scopes  # noqa: F401 - registers the scopes
from .audit.runner import audit
from .cards import CONFIRMED_WITHIN
from .lifecycle.changes import accepted, permit
from .lifecycle.claim_workflow import CLAIM
from .lifecycle.fewer import LEFT
from .lifecycle.gift_workflow import GIFT
from .lifecycle.loading import load
from .lifecycle.message import APPLICATION, EMAIL_WORKFLOW, PARCEL_WORKFLOW, PRIVATE, WORKFLOW
from .lifecycle.numbers import number
from .lifecycle.operator_search import find
from .lifecycle.operator_view import customer_view
from .lifecycle.readdressing import CHANGED
from .lifecycle.refund_workflow import REFUND
from .lifecycle.reminders import REMIND_AFTER
from .lifecycle.removal_workflow import REMOVAL
from .lifecycle.return_workflow import RETURN
from .lifecycle.status import receive as receive_of_orders
from .lifecycle.submission import record
from .parcels import plan, send_parcel
from .stock import workflows as stock
from .subscriptions import daily, outcomes, renewal

# most orders have no `handling`: orders/handling.py
TO_PAY = field("handling", "to_pay", default=field("total"))
# of what is left, once something was removed: orders/lifecycle/fewer.py
CHARGED = first(field(LEFT, "handling", "to_pay"), field(LEFT, "total"), TO_PAY)
RELEASED_AT = field("handling", "released_at", default=None)

for agent in (Inventory, Payment, Shipping, Courier, Notification):
    register(agent)

register(
    Workflow(
        name=WORKFLOW,
        record=record,
        load=load,
        find=find,
        private=PRIVATE,
        accepted=accepted,
        permit=permit,
        owner_application=APPLICATION,
        not_by_hand="An order is placed in the shop or by its API: only there it gets its customer, its "
        "goods and its price.",
        label=number,
        contact=field("email"),
        value={
            "amount": field(LEFT, "total", default=field("total")),
            "currency": field("currency"),
        },
        personal=[
            field("address"),
            field("confirmation", "text"),
            field("confirmation", "html"),
            field("customer"),
        ],
        steps=[
            Step(
                name="reserve_stock",
                agent="inventory",
                action="reserve",
                when=field("handling", "reserve", default=True),
                not_before=RELEASED_AT,
                request={
                    "order": field("order"),
                    "lines": field("handling", "reserve", default=field("lines")),
                },
                undo="release",
                undo_request={"key": key("reserve_stock")},
            ),
            Step(
                name="authorize_payment",
                agent="payment",
                action="authorize",
                when=TO_PAY,
                not_before=RELEASED_AT,
                request={
                    "order": field("order"),
                    "amount": TO_PAY,
                    "currency": field("currency"),
                    "payment_method": field("payment_method"),
                    "page": loaded("page"),
                },
                # the bank may ask the customer, and a transfer arrives in days
                ends_within=field("pay_within", default=CONFIRMED_WITHIN),
                remind=REMIND_AFTER,
                late="undo",
                undo="void",
                undo_request={"payment": result("authorize_payment", "id")},
            ),
            Step(
                name="review_order",
                person=ROLE,
                after=["authorize_payment"],
                when=result("authorize_payment", "review", default=False),
                request={
                    "score": result("authorize_payment", "risk", default=0),
                    "amount": TO_PAY,
                    "currency": field("currency"),
                    "email": loaded("email"),
                    "address": loaded("address"),
                    CHANGED: field(CHANGED, default=None),
                },
                returns=Decision,
                refused={TOO_RISKY: "undo"},
                ends_within=settings.RISK_DECISION_HOURS * 3600,
                late=settings.RISK_UNDECIDED,
            ),
            Step(
                name="make_goods",
                person=WORKSHOP,
                after=["reserve_stock", "review_order"],
                when=field("handling", "made", default=False),
                request={"order": field("order"), "made": field("handling", "made", default=None)},
                ends_within=field("handling", "finish_within", default=None),
                late="error",
            ),
            Step(
                name="create_shipment",
                agent="shipping",
                action="book",
                after=["make_goods"],
                # not of goods in several warehouses, nor of what is sent by e-mail
                when=field(
                    "handling", "ships", default=not_(result("reserve_stock", "lines", default=[]))
                ),
                refused=REFUSED,
                away_after=settings.CARRIER_AWAY_AFTER,
                request={
                    "order": field("order"),
                    # none of goods that are made to order
                    "reservation": result("reserve_stock", "id", default=None),
                    "address": loaded("address"),
                    CHANGED: field(CHANGED, default=None),
                    "only": field(LEFT, "only", default=None),
                },
                undo="cancel",
                undo_request={"key": key("create_shipment")},
            ),
            # most orders need one parcel by the usual carrier, and have neither of these
            Step(
                name="plan_parcels",
                compute=plan,
                after=["create_shipment"],
                when=field("handling", "ships", default=not_(done("create_shipment"))),
                request={
                    "reserved": result("reserve_stock", "lines", default=[]),
                    "lines": field(LEFT, "lines", default=field("lines")),
                    "emailed": field("handling", "emailed", default=[]),
                    "refused": passed("create_shipment"),
                    "parts": field(LEFT, "parts", default=[]),
                },
            ),
            Step(
                name="send_parcels",
                workflow=PARCEL_WORKFLOW,
                after=["plan_parcels"],
                when=done("plan_parcels"),
                each=result("plan_parcels", "parcels"),
                request={
                    "order": field("order"),
                    "reservation": result("reserve_stock", "id", default=None),
                    "warehouse": item("warehouse"),
                    "lines": item("lines"),
                    "by_courier": item("by_courier"),
                    "only": item("only", default=None),
                    CHANGED: field(CHANGED, default=None),
                },
                refused={"child_undone": "pass"},  # the others go on
            ),
            Step(
                # last of the steps that can fail, so that goods that cannot be shipped are not charged
                name="capture_payment",
                agent="payment",
                action="capture",
                after=["create_shipment", "send_parcels"],
                # not of a transfer, which is taken as it arrives, nor of what is free
                when=not_(
                    first(result("authorize_payment", "taken"), not_(done("authorize_payment")))
                ),
                request={
                    "payment": result("authorize_payment", "id", default=None),
                    "amount": CHARGED,
                },
                undo="refund",
                undo_request={"payment": result("capture_payment", "id")},
                charges={"amount": CHARGED, "currency": field("currency")},
            ),
            Step(
                name="send_confirmation",
                agent="notification",
                action="send",
                after=["capture_payment"],
                request={
                    "order": field("order"),
                    "to": loaded("email"),
                    "mail": field("confirmation"),
                    # the letter of an order without a parcel has no place for its number
                    "parcel": first(
                        result("create_shipment", "tracking"),
                        result("send_parcels", "items"),
                        PARCEL,
                    ),
                },
                irreversible="the confirmation is in the customer's inbox",
            ),
        ],
    )
)
register(send_parcel)
register(REFUND)
register(
    Workflow(
        name=EMAIL_WORKFLOW,
        label=lambda data: str(data["number"]),
        contact=field("email"),
        personal=[field("mail", "text"), field("mail", "html")],  # a subject has a number only
        not_by_hand="A letter belongs to an order: the change of the order sends it.",
        background=True,  # several per order; operators look for the orders first
        steps=[
            Step(
                name="send",
                agent="notification",
                action="send",
                request={"to": field("email"), "mail": field("mail")},
                irreversible="the letter is in the customer's inbox",
            ),
        ],
    )
)
register(daily.WORKFLOW)
register(daily.SCHEDULE)
for of_stock in (stock.READ_WORKFLOW, stock.CORRECT_WORKFLOW, *stock.SCHEDULES):
    register(of_stock)


def receive(messages: Sequence[Status]) -> None:
    """Have each part of the shop apply the status messages that concern it."""
    for part in (receive_of_orders, outcomes.receive, renewal.receive, stock.receive):
        part(messages)


register(RETURN)
register(REMOVAL)
register(CLAIM)
register(GIFT)
receive_status(APPLICATION, receive)
register_audit(APPLICATION, audit)
register_external_view(WORKFLOW, customer_view)
