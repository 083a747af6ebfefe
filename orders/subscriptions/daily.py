"""The workflow of the daily run and the schedule that submits it."""

from django.conf import settings

from orchestration.api import Schedule, Step, Workflow
from orders.lifecycle.message import APPLICATION

from .renewal import RENEWAL, RENEWED

WORKFLOW = Workflow(
    # not one of the shop's own (`owner_application`): the public web process may post those
    name=RENEWAL,
    not_by_hand="Its schedule starts it each day: have that run now.",
    background=True,
    steps=[
        # the shop does the work as it hears of the task: orders/subscriptions/renewal.py
        Step(name="renew", signal=RENEWED, ends_within=6 * 3600),
    ],
)
SCHEDULE = Schedule(
    name="subscriptions",
    workflow=RENEWAL,
    # in the forenoon: whom the bank asks has to answer within half an hour
    cron="0 9 * * *",
    zone=settings.SHOP_TIME_ZONE,
    # a run of before that is in error waits for a person, and the orders of today must not
    overlap="allow",
    reply_to=APPLICATION,
)
