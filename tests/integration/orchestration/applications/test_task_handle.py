"""A submission returns a handle; each function that applications call has a coroutine function."""

import asyncio
import copy
import inspect
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.http import JsonResponse
from django.test import AsyncClient
from django.urls import path

from orchestration import api, registry
from orchestration.testing.outcomes import done, rejected

pytestmark = pytest.mark.django_db(transaction=True)
ASYNCHRONOUS = [name for name in api.__all__ if inspect.iscoroutinefunction(getattr(api, name))]


@pytest.fixture(autouse=True)
def _answers(run):
    run.script("greeter.greet", done(id="g-1"))


def ask(**more):
    return {"actor": "Ada", "id": uuid4(), **more}


def test_handle_follows_and_undoes_its_task(run):
    task = api.submit("greet", reference="42", data={"name": "Ada"})
    assert (task.workflow, task.reference, task.progress()) == ("greet", "42", None)
    run.go()
    assert task.progress().state == "processed"
    task.undo(**ask(reason="I am away"))
    run.go()
    assert task.progress().state == "undone"


def test_handle_resubmits_and_completes_steps_of_its_task(run):
    run.script("greeter.greet", rejected("too_long"), done(id="g-1"))
    failed = api.submit("greet", reference="1", data={"name": "Ada"})
    run.go()
    change = api.Amendment(request={"to": "A"})
    failed.resubmit("hello", attempt=1, amendment=change, **ask(reason="shorter"))
    run.go()
    assert failed.progress().state == "processed"


def test_handle_completes_a_step_that_awaits_its_result(run, monkeypatch):
    goods = api.Step(name="goods", signal="arrived", ends_within=60)
    monkeypatch.setitem(registry.workflows, "pickup", api.Workflow(name="pickup", steps=[goods]))
    task = api.submit("pickup", reference="1", data={})
    task.complete("arrived", result={"boxes": 2}, **ask())
    run.go()
    assert task.progress().steps[0].result == {"boxes": 2}


def test_many_are_submitted_at_once_and_have_handles_in_their_order(django_assert_num_queries):
    new = [
        api.Posting(workflow="greet", reference=f"{n}", data={"name": "Ada"}) for n in range(100)
    ]
    with django_assert_num_queries(1):
        tasks = api.submit_many(new)
    assert tasks == [api.TaskHandle("greet", f"{n}") for n in range(100)]


def test_handle_is_a_value(run):
    task = api.TaskHandle("greet", "42")
    assert copy.deepcopy(task) == task
    assert len({task, api.TaskHandle("greet", "42"), api.TaskHandle("greet", "43")}) == 2
    with pytest.raises(AttributeError):
        task.reference = "43"


def test_every_function_that_applications_call_has_a_coroutine_function():
    called = {"submit", "submit_many", "progress", "status_messages", "acknowledge"}
    called |= {"amend", "complete"}
    called |= {name for name in api.__all__ if name.startswith("request_")}
    assert {name[1:] for name in ASYNCHRONOUS} == called


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_coroutine_function_is_called_as_its_plain_one(name):
    plain, coroutine = getattr(api, name[1:]), getattr(api, name)
    assert inspect.signature(coroutine) == inspect.signature(plain)
    assert (coroutine.__name__, f"`{name[1:]}`" in coroutine.__doc__) == (name, True)


async def order(request, reference):
    """Submit a task, withdraw it if that was asked for, and answer where it stands."""
    task = await api.asubmit(
        "greet", reference=reference, data={"name": request.GET["name"]}, reply_to="hotel"
    )
    if "away" in request.GET:
        await task.aundo(**ask(reason="I am away"))
    now, messages = await asyncio.gather(task.aprogress(), api.astatus_messages("hotel", limit=10))
    await api.aacknowledge("hotel", [message["id"] for message in messages])
    kinds = [message["kind"] for message in messages]
    return JsonResponse({"state": now.state if now else None, "kinds": kinds})


urlpatterns = [path("orders/<reference>", order)]


@pytest.mark.urls(__name__)
def test_async_view_submits_undoes_and_follows_a_task(run, settings):
    settings.MIDDLEWARE = []
    api.ensure_application("hotel", "sas_hotel", description="Rooms", scopes=[api.READ_STATUS])

    async def get(query):
        return (await AsyncClient().get(f"/orders/7?name=Ada{query}")).json()

    assert async_to_sync(get)("") == {"state": None, "kinds": []}
    run.go()
    assert async_to_sync(get)("&away") == {"state": "processed", "kinds": ["received", "completed"]}
    run.go()
    assert async_to_sync(get)("") == {"state": "undone", "kinds": ["undoing", "undone"]}


def test_what_is_refused_is_raised_in_asynchronous_code_too():
    with pytest.raises(LookupError, match="name"):
        async_to_sync(api.asubmit)("greet", reference="42", data={})
