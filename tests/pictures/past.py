"""Gives a stack a past to look at, and says where it is. Run in the stack's own environment."""

import json
import sys
from datetime import timedelta
from uuid import uuid4

import django

from drill.waiting import wait_for

ENDS = {  # the demo's scenes that are shown, and how their tasks end
    "confirmed": ("confirmed", "processed"),
    "declined": ("declined, the customer is asked", "error"),
    "sold_out": ("sold out, the customer is asked", "error"),
    "refunded": ("paid and cancelled", "undone"),
    "refused": ("refused by the shipper", "error"),
    "asks": ("the customer is to confirm at the bank", "processing"),
    "removed": ("a unit of it removed, the transfer is awaited", "processing"),
    "returned": ("completed, and something comes back", "processed"),
    "exchanged": ("completed, and exchanged", "processed"),
}
LATE = 12  # orders that meet a partner who is down: as many as open its breaker


def scenes() -> dict[str, str]:
    """Play the demo's scenes; return where their ends are to be seen."""
    from orchestration.models import Incident, Schedule, Step, Submission, Task
    from orders.demo import scenarios
    from orders.demo.catalogue import GONE
    from orders.lifecycle.message import WORKFLOW
    from orders.models import Product

    played: dict[str, str] = {}

    def note(line: str) -> None:
        order, _, name = line.partition("  ")
        played.setdefault(name, order)

    def ended(name: str, state: str) -> bool:
        return Task.objects.filter(reference=played[name], state=state).exists()

    scenarios.play(note)
    wait_for(
        lambda: all(ended(*end) for end in ENDS.values()), "the orders have ended", 300, pause=0.5
    )
    for workflow, data in (
        (WORKFLOW, {"order": "7"}),
        ("send_gift_card", {"to": "ada@example.org"}),
    ):
        Submission.objects.create(workflow=workflow, reference=str(uuid4()), data=data)
    wait_for(lambda: Incident.objects.count() >= 3, "incidents are counted", 60, pause=0.5)
    schedules()
    numbers = dict(Schedule.objects.values_list("name", "id"))
    shown = {story: played[name] for story, (name, _) in ENDS.items()}
    failed = Step.objects.get(task__reference=shown["refused"], process_state="error")
    others = Step.objects.filter(name=failed.name, process_state="error").exclude(id=failed.id)
    return {
        **places(shown),
        "step": str(failed.id),
        "late_effect": str(late_effect(shown["refunded"])),
        "other": str(others[0].task_id),
        "incident": str(Incident.objects.order_by("-open_tasks", "id")[0].id),
        "product": Product.objects.order_by("position")[0].get_absolute_url(),
        "product_gone": Product.objects.get(sku=GONE).get_absolute_url(),
        **{f"schedule_{id_}": str(number) for id_, number in numbers.items()},
    }


def schedules() -> None:
    """Create schedules in each state: one has run, one is behind it, one is paused, one cannot submit."""
    from orchestration.api import schedule
    from orchestration.database import clock
    from orchestration.models import Schedule

    started = clock.database_now().replace(microsecond=0)
    soon = {"every": 60, "start_at": started + timedelta(seconds=2), "overlap": "queue"}
    schedule("check-all-parts", workflow="canary", **soon)
    schedule("nightly", workflow="canary", cron="30 2 * * *", zone="Europe/Berlin", jitter=600.0)
    schedule("leap-day", workflow="canary", cron="0 12 29 2 *", catch_up="none")
    schedule("of-a-former-release", workflow="canary", cron="*/5 * * * *")
    ran = Schedule.objects.filter(name="check-all-parts", submitted__gt=0)
    wait_for(ran.exists, "it has run", 60, pause=0.5)
    Schedule.objects.filter(name="leap-day").update(paused=True, due_at=None, look_at=None)
    Schedule.objects.filter(name="of-a-former-release").update(
        declared=True,
        problem="No code declares the schedule 'of-a-former-release' any more.",
        tries=7,
        failing_since=started,
        look_at=started + timedelta(minutes=30),
    )
    last = ran.get()
    Schedule.objects.filter(name="nightly").update(
        submitted=212,
        skipped=2,
        missed=1,
        last_reference=last.last_reference,
        last_due=last.last_due,
        skipped_due=last.last_due,
        skipped_behind="nightly/2026-03-29T01:00:00Z",
    )


def late_effect(order: str) -> int:
    """Show an effect of an order late, as after a failover; return its alert."""
    from orchestration.messaging.messages import Reply
    from orchestration.models import Alert, Step
    from orchestration.transitions.replies import record

    step = Step.objects.get(task__reference=order, name="authorize_payment", direction="do")
    reply = Reply(
        step=step.id, task=step.task_id, attempt=step.attempt, outcome="done",
        result={"id": "pi_late", "status": "requires_capture"}, code="", message="", tries=1,
        started=1.0, ended=2.0, by="payment@lost:1", generation=step.generation + 1,
    )  # fmt: skip
    record([reply])
    return Alert.objects.get(fingerprint__startswith=f"late_effect/{step.task_id}/").id


def late() -> dict[str, str]:
    """Place orders while a partner is down; return the pages that show it."""
    from orchestration.models import Gate, Policy, Step
    from orchestration.states import GateState
    from orders.demo.shoppers import Shoppers

    # they go on trying until all pages are seen: so the breaker has something to probe with
    Policy.objects.filter(agent="payment").update(failure_threshold=500, undo_threshold=1000)
    shoppers = Shoppers()
    orders = [str(shoppers.buy(card="pm_card_visa")) for _ in range(LATE)]
    opened = Gate.objects.exclude(state=GateState.CLOSED)
    wait_for(opened.exists, "the breaker of what is down is open", 120, pause=0.5)
    tried = Step.objects.filter(task__reference__in=orders, attempt__gt=1)
    wait_for(tried.exists, "an order is tried again", 60, pause=0.5)
    return {**places({"late": tried[0].task.reference}), "gate": opened[0].agent}


def places(orders: dict[str, str]) -> dict[str, str]:
    """Return the pages of orders: for their customers, for others, and for operators."""
    from orchestration.models import Task
    from orders.lifecycle import access

    paths = {}
    for story, order in orders.items():
        link = access.link(order)
        task = Task.objects.get(reference=order).id
        paths |= {f"order_{story}": link, f"stub_{story}": link.partition("?")[0]}
        paths |= {f"address_{story}": link.replace("/?", "/address/?")}
        paths |= {f"task_{story}": str(task), f"id_{story}": order}
    return paths


if __name__ == "__main__":
    django.setup()
    json.dump({"scenes": scenes, "late": late}[sys.argv[1]](), sys.stdout)
