"""Steps that are refused as their service has been away for too long, so that another one does their work."""

from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration import api, registry
from orchestration.models import Attempt, Gate
from orchestration.payloads.placeholders import done, first, key, not_, result
from orchestration.testing import outcomes
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.carrier import Carrier
from tests.support.violations import violations

pytestmark = pytest.mark.django_db
HOUR = 3600.0


class Courier(Carrier):
    name = "courier"


def book(name, agent, **fields):
    undo = {"undo": "cancel", "undo_request": {"key": key(name)}}
    return Declared(name=name, agent=agent, action="book", **undo, **fields)


@pytest.fixture
def declared(monkeypatch):
    for agent in (Carrier, Courier):
        monkeypatch.setitem(registry.agents, agent.name, agent)
    steps = [
        book("ship", "carrier", away_after=HOUR, refused={"away": "pass"}),
        book("ship_fast", "courier", after=["ship"], when=not_(done("ship"))),
        Declared(
            name="track", compute=dict, after=["ship_fast"],
            request={"parcel": first(result("ship", "id"), result("ship_fast", "id"))},
        ),
    ]  # fmt: skip
    monkeypatch.setitem(registry.workflows, "w", Workflow(name="w", steps=steps, time_allowed=1e6))


@pytest.fixture
def run(declared, run):
    """A run that knows the carriers."""
    run.script("courier.book", outcomes.done(id="fast"))
    return run


@pytest.fixture
def order(run):
    """Post an order."""
    return lambda: run.submit("w")


def open_breaker(run, agent="carrier"):
    never = run.clock.now + timedelta(days=9)
    gate = Gate.objects.filter(agent=agent)
    assert gate.update(state="open", opened_at=run.clock.now, probe_at=never)


def test_other_carrier_takes_what_waits_for_one_that_is_away(run, order):
    open_breaker(run)
    waiting = order()
    run.wait(HOUR - 60)
    assert waiting.steps["ship"] == "pending"
    run.wait(120)
    assert waiting.steps == {"ship": "skipped", "ship_fast": "processed", "track": "processed"}
    assert waiting.result("track") == {"parcel": "fast"}
    assert not run.calls("carrier.book")
    attempt = Attempt.objects.get(step__name="ship")
    assert (attempt.outcome, attempt.error_code) == ("rejected", "away")
    assert not violations()


def test_what_may_have_been_done_stays(run, order):
    run.script("carrier.book", outcomes.in_doubt())
    run.policy("carrier", tries=1)
    doubtful = order()
    run.go()
    open_breaker(run)
    run.wait(3 * HOUR)
    assert doubtful.steps == {"ship": "pending", "ship_fast": "waiting", "track": "waiting"}


def test_service_that_answered_meanwhile_is_not_away(run, order):
    open_breaker(run)
    waiting = order()
    run.wait(HOUR - 60)
    Gate.objects.filter(agent="carrier").update(answered_at=run.clock.now)
    run.wait(HOUR)
    assert waiting.steps["ship"] == "pending"


def test_service_that_asked_for_a_pause_is_not_away(run, order):
    pause = run.clock.now + timedelta(days=9)
    assert Gate.objects.filter(agent="carrier").update(paused_until=pause)
    waiting = order()
    run.wait(3 * HOUR)
    assert waiting.steps["ship"] == "pending"


def test_undone_task_is_not_given_up(run, order):
    run.script("carrier.book", outcomes.done(id="a"))
    run.script("courier.cancel", outcomes.done())
    waiting = order()
    open_breaker(run)
    run.go()
    api.request_undo("w", waiting.reference, actor="ann", reason="no", id=uuid4())
    run.wait(2 * HOUR)
    assert (waiting.state, waiting.steps["ship"]) == ("undone", "cancelled")


def test_without_a_word_on_what_follows_it_is_an_error(run, order, monkeypatch):
    alone = Workflow(name="w", steps=[book("ship", "carrier", away_after=HOUR)], time_allowed=1e6)
    monkeypatch.setitem(registry.workflows, "w", alone)
    open_breaker(run)
    waiting = order()
    run.wait(HOUR + 60)
    assert (waiting.steps["ship"], waiting.step("ship").error_code) == ("error", "away")
    assert not violations()
