"""Mistakes in declarations are found when Django starts."""

import copy
import functools
import inspect
import sqlite3
from collections.abc import Awaitable
from dataclasses import FrozenInstanceError, dataclass, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest

from orchestration import api, checks, registry
from orchestration.api import Agent, Call, HttpAgent, Step, Workflow, action, field, key, result
from orchestration.checks import check_agents, check_applications, check_names, check_workflows
from orchestration.messaging import queues


class Clerk(Agent):
    name = "clerk"

    @action
    async def stamp(self, call):
        """Do it."""

    @action
    async def erase(self, call):
        """Undo it."""

    async def burn(self, call):
        """Do it, though no step can name it."""


class Unregistered(Agent):
    name = "unregistered"


class Impostor(Agent):
    name = "clerk"

    @action
    async def stamp(self, call):
        """Do it, as another agent of the same name."""


@pytest.fixture
def problems_of(monkeypatch):
    """Return what the checks find in one step of a workflow."""
    monkeypatch.setitem(registry.agents, "clerk", Clerk)

    def find(**fields):
        step = Step(**{"name": "a", "agent": "clerk", "action": "stamp", **fields})
        monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=[step])})
        return [(error.id.removeprefix("orchestration."), error.msg) for error in check_workflows()]

    return find


@pytest.mark.parametrize(
    "fields",
    [
        {"undo": "erase", "undo_request": {"key": key("a"), "page": field("page")}},
        {"undo": None},
        {"agent": Clerk, "action": Clerk.stamp, "undo": Clerk.erase},
        {"action": Clerk.stamp, "undo": "erase"},
        {"irreversible": "ink does not come off"},
        {"undo": None, "irreversible": "ink does not come off"},
        {"agent": "", "action": "", "compute": dict},
    ],
)
def test_each_declaration_of_an_action_and_its_undo_is_accepted(problems_of, fields):
    assert problems_of(**fields) == []


class SeniorClerk(Clerk):
    name = "senior"


def test_class_and_methods_are_read_as_their_names(monkeypatch):
    fields = {"agent": SeniorClerk, "action": SeniorClerk.stamp, "undo": SeniorClerk.erase}
    step = Step(name="a", **fields)
    assert (step.agent, step.action, step.undo) == ("senior", "stamp", "erase")
    assert step == Step(name="a", agent="senior", action="stamp", undo="erase")
    assert replace(step, name="b").agent == copy.copy(step).agent == "senior"
    monkeypatch.setitem(registry.agents, "senior", SeniorClerk)
    monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=[step])})
    assert check_workflows() == []
    with pytest.raises(FrozenInstanceError):
        step.agent = "clerk"


def test_step_without_an_agent_has_the_names_of_none():
    step = Step(name="a", compute=dict)
    assert (step.agent, step.action, step.undo) == ("", "", None)


@pytest.mark.parametrize(
    ("fields", "identifier", "problem"),
    [
        ({"undo": None, "agent": "clark"}, "E002", "names agent 'clark'; did you mean 'clerk'?"),
        ({"undo": None, "action": "stmp"}, "E003", "names action 'stmp' of 'clerk'; did you mean"),
        ({"undo": "erse"}, "E003", "names action 'erse' of 'clerk'; did you mean 'erase'?"),
        (
            {"undo": None, "agent": "unregistered"},
            "E002",
            "test_checks.Unregistered has this name, and is not registered",
        ),
        ({"undo": None, "agent": 7}, "E002", "agent is 7, not an agent or the name of one"),
        ({"undo": None, "agent": int}, "E002", "agent is the class int, not an agent or the name"),
        ({"undo": None, "agent": Agent}, "E002", "agent is the class Agent, which has no name"),
        ({"undo": None, "agent": Unregistered}, "E002", "has this name, and is not registered"),
        (
            {"undo": None, "agent": Impostor},
            "E002",
            "names the class Impostor, and the class Clerk is registered as the agent 'clerk'",
        ),
        ({"undo": None, "action": "burn"}, "E003", "which is not marked as an action"),
        ({"undo": None, "action": "perform"}, "E003", "names action 'perform' of 'clerk'; known:"),
        ({"undo": None, "action": Clerk.burn}, "E003", "which is not marked as an action"),
        (
            {"undo": None, "action": Impostor.stamp},
            "E003",
            "names Impostor.stamp, which is not a method of Clerk",
        ),
        ({"undo": Impostor.stamp}, "E003", "names Impostor.stamp, which is not a method of Clerk"),
        ({"undo": lambda: None}, "E003", "<lambda>, which is not a method of Clerk"),
        ({"undo": None, "action": 7}, "E003", "action is 7, not an action or the name of one"),
        ({"undo": int}, "E003", "undo is the class int, not an action or the name of one"),
        ({"undo": None, "request": lambda data: data}, "E001", "its request is a lambda, not a"),
        ({"undo": None, "request": "page"}, "E001", "its request is 'page', not a dict"),
        (
            {"undo": None, "request": {"all": [{"at": field}]}},
            "E001",
            "its request has at 'all.0.at' the function field, which is not JSON",
        ),
        (
            {"undo": None, "request": {"both": (field("a"), 1)}},
            "E001",
            "its request has at 'both' a tuple, which is not JSON",
        ),
        ({"undo": "erase", "undo_request": {1: 2}}, "E001", "its undo_request has 1, which is"),
        ({"undo": None, "charges": 5}, "E001", "its charges is 5, not a dict"),
        ({"undo": None, "after": "quota"}, "E001", "after is 'quota', not a list"),
        ({"undo": None, "after": [Clerk]}, "E001", "after has the class Clerk, not the name of"),
        ({"irreversible": True}, "E005", "irreversible is True: it says why, in words"),
        ({"agent": "", "action": "", "compute": "sum"}, "E001", "compute is 'sum', not a function"),
        ({}, "E005", "does not say how it is undone"),
        ({"undo": "erase", "irreversible": "ink"}, "E005", "is irreversible, but names the undo"),
        ({"undo": None, "undo_request": {"key": 1}}, "E005", "has an undo_request, but names no"),
        (
            {"undo": "erase", "undo_request": {"key": key("b")}},
            "E001",
            "its undo_request takes the key of 'b', which need not be done before it",
        ),
    ],
)
def test_mistakes_are_reported_with_a_sentence(problems_of, fields, identifier, problem):
    ((reported, message),) = problems_of(**fields)
    assert reported == identifier
    assert message.startswith("workflow 'w': step 'a'")
    assert problem in message


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({}, "undo=None"),
        ({"undo": None, "agent": Agent}, "Give the class a name"),
        ({"undo": None, "agent": Impostor}, "Register the class that the step names"),
        ({"undo": None, "agent": "unregistered"}, "Add register(Unregistered) below it."),
        ({"undo": None, "action": Impostor.stamp}, "Write the method as Clerk has it"),
        ({"undo": None, "action": 7}, "Write the method as its class has it"),
        ({"undo": None, "action": "burn"}, "Put @action above Clerk.burn."),
        ({"undo": None, "after": "quota"}, "Write after=['quota']."),
        ({"undo": None, "request": "page"}, "field(…) stands for a value of the input"),
    ],
)
def test_mistakes_come_with_a_hint(problems_of, fields, hint):
    problems_of(**fields)
    (error,) = check_workflows()
    assert hint in error.hint


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (Step(name="a", agent="clerk"), "steps is a Step, not a list of steps"),
        ("stamp", "steps is 'stamp', not a list of steps"),
        ([Clerk], "steps has the class Clerk, not a Step"),
        ([Step(name="moni tor", agent="clerk", action="stamp", undo=None)], "'moni tor' may have"),
        ([Step(name=7, agent="clerk", action="stamp", undo=None)], "the name of the step is 7"),
    ],
)
def test_malformed_steps_are_reported_once(monkeypatch, steps, problem):
    monkeypatch.setitem(registry.agents, "clerk", Clerk)
    monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=steps)})
    (error,) = check_workflows()
    assert problem in error.msg


@pytest.mark.parametrize("days", [0, 36_501, "7", float("nan")])
def test_tasks_that_are_kept_for_no_time_are_reported(monkeypatch, days):
    steps = [Step(name="a", compute=lambda request: request)]
    for keep_days, count in ((days, 1), (7, 0), (None, 0)):
        workflow = Workflow(name="w", steps=steps, keep_days=keep_days)
        monkeypatch.setattr(registry, "workflows", {"w": workflow})
        assert len(check_workflows()) == count


def test_step_after_a_misspelt_one_gets_its_name(monkeypatch):
    monkeypatch.setitem(registry.agents, "clerk", Clerk)
    steps = [
        Step(name="quota", agent="clerk", action="stamp", undo=None),
        Step(name="b", agent="clerk", action="stamp", undo=None, after=["qouta"]),
    ]
    monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=steps)})
    (error,) = check_workflows()
    assert error.msg.endswith("which is not one of its steps; did you mean 'quota'?")


def policy_problems(monkeypatch, policy):
    agent = type("Dns", (Agent,), {"name": "dns", "policy": policy})
    monkeypatch.setattr(registry, "agents", {"dns": agent})
    return [(error.id, error.msg) for error in check_agents()]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"failure_treshold": 3}, "'failure_treshold'; did you mean 'failure_threshold'?"),
        ({"agent": "other"}, "its policy has 'agent'; "),
        ({"time_allowed": 6, "call_timeout": 20}, "time_allowed=6, call_timeout=20: An attempt"),
        ({"tries": 0}, "tries=0: An agent makes between 1 and 10 calls in one attempt."),
        ({"tries": 2.5}, "tries=2.5: it is a whole number"),
        ({"tries": True}, "tries=True: it is a whole number"),
        ({"backoff": "1"}, "backoff='1': it is a number"),
        ({"backoff": float("nan")}, "backoff=nan: it is a number"),
        ({"backoff": None}, "backoff=None: give it a value, or leave it out"),
        ({"on_rejection": "waits"}, "on_rejection='waits': it may be error, wait, undo"),
        (["tries"], "its policy is a list, not a dict of thresholds"),
    ],
)
def test_policies_that_could_not_be_stored_are_reported(monkeypatch, policy, problem):
    ((reported, message),) = policy_problems(monkeypatch, policy)
    assert reported == "orchestration.E007"
    assert message.startswith("agent 'dns': its policy")
    assert problem in message


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"failure_treshold": 3}, "'failure_treshold'; did you mean 'failure_threshold'?"),
        ({"window": 5}, "its policy has 'window', which is its agent's: it is about the service"),
        ({"failure_threshold": 0}, "failure_threshold=0: The failure threshold must be between"),
        ({"resolve_within": 0}, "resolve_within=0: A rejected step must wait more than 0 seconds"),
        ({"undo_threshold": 6}, "undo_threshold=6, and its agent's failure_threshold=7: An undo must"),
        ({"failure_threshold": 9, "undo_threshold": 8}, "failure_threshold=9, undo_threshold=8: An undo"),
        ({"on_rejection": None}, "on_rejection=None: give it a value, or leave it out"),
        ({"extended_wait": "1"}, "extended_wait='1': it is a number"),
        (["on_rejection"], "its policy is a list, not a dict of thresholds"),
    ],
)  # fmt: skip
def test_policies_of_steps_that_could_not_be_stored_are_reported(
    problems_of, monkeypatch, policy, problem
):
    monkeypatch.setattr(Clerk, "policy", {"failure_threshold": 7})
    ((reported, message),) = problems_of(undo=None, policy=policy)
    assert (reported, problem in message) == ("E007", True), message
    assert message.startswith("workflow 'w': step 'a': its policy")


def test_policy_of_a_step_may_be_any_that_fits_its_agents(problems_of, monkeypatch):
    monkeypatch.setattr(Clerk, "policy", {"undo_threshold": 50, "treis": 1})  # reported by itself
    values = {"failure_threshold": 20, "past_threshold": "wait", "extended_wait": 60.0}
    assert problems_of(undo=None, policy=values) == []
    ((reported, message),) = problems_of(agent="", action="", compute=dict, policy=values)
    assert reported == "E007"
    assert message.endswith(
        "step 'a' is computed, which never waits for a service: it takes no policy"
    )


def test_two_mistakes_of_a_policy_are_both_reported(monkeypatch):
    problems = policy_problems(monkeypatch, {"treis": 2, "backoff": "1"})
    assert len(problems) == 2


def test_agents_that_cannot_work_are_reported(monkeypatch):
    class Plain(HttpAgent):
        name = "pl ain"

        @action
        def stamp(self, call):
            """Do it, though it cannot be awaited."""

    monkeypatch.setattr(registry, "agents", {Plain.name: Plain})
    assert sorted(error.id for error in check_agents()) == [
        f"orchestration.{code}" for code in ("E003", "E006", "E008")
    ]


def by_method(self, webhook): ...


async def later(cls, webhook): ...


def without(cls): ...


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (by_method, "its receive is not a class method"),
        (staticmethod(by_method), "its receive is not a class method"),
        (classmethod(later), "its receive is a coroutine"),
        (classmethod(without), "its receive does not take a webhook, and nothing else"),
        (classmethod(by_method), None),
        (classmethod(lambda cls, webhook, more=None: []), None),
    ],
)
def test_agents_that_cannot_receive_are_reported(monkeypatch, method, problem):
    kind = type("Bank", (Agent,), {"name": "bank", "receive": method})
    monkeypatch.setattr(registry, "agents", {"bank": kind})
    errors = check_agents()
    assert [(error.id, problem in error.msg) for error in errors] == (
        [("orchestration.E017", True)] if problem else []
    )


@pytest.mark.parametrize(
    ("name", "is_reserved"),
    [
        *((queue, True) for queue in queues.HANDLERS),
        ("status.shop", True),
        ("web", True),
        ("supervisor", True),
        ("housekeeper", True),
        ("push_notifications", False),
        ("status", False),
    ],
)
def test_agent_with_the_name_of_a_queue_of_the_engine_is_reported(monkeypatch, name, is_reserved):
    class Clerk(Agent):
        pass

    Clerk.name = name
    monkeypatch.setattr(registry, "agents", {name: Clerk})
    assert [error.id for error in check_agents()] == ["orchestration.E006"] * is_reserved


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("orchestration.monitoring.canary", "canary"),
        ("orchestration.functions.workflow", "tasks.default"),
    ],
)
def test_workflow_with_the_name_of_one_of_the_engine_is_reported(monkeypatch, module, name):
    monkeypatch.setattr(registry, "agents", dict(registry.agents))
    for table in ("_places", "registered_twice", "workflows"):
        monkeypatch.setattr(registry, table, type(getattr(registry, table))())
    api.register(Workflow(name=name, steps=[Step(name="a", compute=dict)]))
    import_module(module).declare()
    errors = check_names()
    assert {error.id for error in errors} == {"orchestration.E009"}
    assert all(repr(name) in error.msg for error in errors)


def test_plain_function_with_an_annotation_is_found_and_a_wrapper_is_not(monkeypatch):
    def logged(method):
        @functools.wraps(method)
        def wrapper(*arguments):
            return method(*arguments)

        return wrapper

    class Plain(Agent):
        name = "plain"

        @action
        def stamp(self, call) -> Stamped:
            """Do it, though it cannot be awaited."""

        @action
        def write(self, call) -> dict[str, Any]:
            """Do it, though it cannot be awaited."""

        @action
        def erase(self, call) -> "Awaitable[Stamped]":
            """Return what another method's call gives."""

        @action
        @logged
        async def burn(self, call):
            """Do it, and log it."""

    monkeypatch.setattr(registry, "agents", {"plain": Plain})
    assert {(error.id, error.msg) for error in check_agents()} == {
        ("orchestration.E003", f"agent 'plain': its action {name!r} is a plain function")
        for name in ("stamp", "write")
    }


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (inspect.Parameter.empty, "'page' has no annotation"),
        (dict, "'page' is annotated with <class 'dict'>, which has no fields of its own"),
        ("Unknown", "'page' has an annotation that fails: name 'Unknown' is not defined"),
    ],
)
def test_payload_without_a_type_is_found(monkeypatch, annotation, problem):
    async def stamp(_agent, call, page):
        """Do it."""

    if annotation is not inspect.Parameter.empty:
        stamp.__annotations__["page"] = annotation
    kind = type("Untyped", (Agent,), {"name": "untyped", "stamp": action(stamp)})
    monkeypatch.setattr(registry, "agents", {"untyped": kind})
    (error,) = check_agents()
    assert error.id == "orchestration.E014"
    assert error.msg == f"agent 'untyped': its action 'stamp' takes a payload: {problem}"
    assert "call.payload" in error.hint


def test_parameters_that_need_no_payload_are_accepted(monkeypatch):
    class Free(Agent):
        name = "free"

        @action
        async def stamp(self, call, retries=3):
            """Do it."""

        @action
        async def erase(self, call, *rest):
            """Undo it."""

    monkeypatch.setattr(registry, "agents", {"free": Free})
    assert check_agents() == []


@dataclass
class Page:
    number: int
    text: str = ""


@dataclass
class Stamped:
    mark: str


class Typist(Agent):
    name = "typist"

    @action
    async def stamp(self, call: Call, page: Page) -> Stamped:
        """Do it."""


def total(request: Stamped) -> Page:
    """Compute it."""


@pytest.mark.parametrize(
    ("request_of_a", "request_of_b", "problem"),
    [
        ({"number": 1}, {"number": result("a", "mark")}, None),
        (field("page"), {"number": result("c", "number"), "text": result("a")}, None),
        (
            {"number": 1, "txet": ""},
            {"number": 1},
            "'a' sends 'stamp' 'txet', which it does not take",
        ),
        ({"nmuber": 1, "number": 1}, {"number": 1}, "did you mean 'number'?"),
        ({"text": "x"}, {"number": 1}, "step 'a' sends 'stamp' no 'number', which it needs"),
        (
            {"number": 1},
            {"number": result("a", "mrak")},
            "'b' takes 'mrak' of the result of 'a'; did",
        ),
        (
            {"number": 1},
            {"number": result("c", "mark")},
            "takes 'mark' of the result of 'c'; known",
        ),
    ],
)
def test_requests_are_held_against_the_types_of_actions(
    monkeypatch, request_of_a, request_of_b, problem
):
    monkeypatch.setattr(registry, "agents", {"typist": Typist})
    stamp = {"agent": "typist", "action": "stamp", "undo": None}
    steps = [
        Step(name="a", request=request_of_a, **stamp),
        Step(name="c", compute=total, request={"mark": "x"}),
        Step(name="b", request=request_of_b, after=["a", "c"], **stamp),
    ]
    monkeypatch.setattr(registry, "workflows", {"w": Workflow(name="w", steps=steps)})
    errors = [(error.id, error.msg) for error in check_workflows()]
    if problem is None:
        assert errors == []
    else:
        assert errors[0][0] == "orchestration.E010"
        assert problem in errors[0][1]


DECLARED = """
from orchestration.api import Agent, Step, Workflow, register
class Clerk(Agent):
    name = "clerk"
register(Clerk)
register(Workflow(name="w", steps=[Step(name="a", compute=dict)]))
"""


@pytest.mark.parametrize(("files", "count"), [(("one", "one"), 0), (("one", "two"), 2)])
def test_two_of_one_name_are_reported_with_their_places(monkeypatch, files, count):
    for name, empty in (
        ("agents", {}),
        ("workflows", {}),
        ("_places", {}),
        ("registered_twice", []),
    ):
        monkeypatch.setattr(registry, name, empty)
    for name in files:
        exec(compile(DECLARED, f"/project/{name}/workflow.py", "exec"), {})
    errors = check_names()
    assert [error.id for error in errors] == ["orchestration.E009"] * count
    for error, line in zip(errors, (5, 6), strict=False):
        assert error.msg.endswith(f"in one/workflow.py:{line} and in two/workflow.py:{line}")


@pytest.mark.parametrize("thing", [Clerk(), Agent, "clerk", result])
def test_only_workflows_and_named_agents_are_registered(thing):
    with pytest.raises(TypeError, match="register"):
        api.register(thing)


@pytest.mark.parametrize(
    ("vendor", "driver", "problem"),
    [
        ("postgresql", psycopg2, None),
        ("sqlite", sqlite3, "the database is sqlite"),
        ("postgresql", sqlite3, "Django uses psycopg 3"),
    ],
)
def test_database_of_another_kind_is_reported(monkeypatch, vendor, driver, problem):
    here = SimpleNamespace(vendor=vendor, Database=driver)
    monkeypatch.setattr(checks, "connection", here)
    messages = [error.msg for error in checks.check_database()]
    assert [message.startswith(problem) for message in messages] == ([True] if problem else [])


def test_application_that_is_not_installed_is_reported(settings, tmp_path):
    settings.BASE_DIR = tmp_path
    for name, text in {
        "greetings": "from orchestration.api import register\n",
        "jenkins": "import json\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "workflow.py").write_text(text)
    (warning,) = check_applications()
    assert warning.id == "orchestration.W001"
    assert "'greetings' is not in INSTALLED_APPS" in warning.msg


def test_invalid_names_are_reported(monkeypatch):
    sound = Workflow(name="a", steps=[Step(name="a", compute=dict)])
    monkeypatch.setattr(
        registry, "workflows", dict.fromkeys(["a" * 61, "b" * 60, "two words"], sound)
    )
    long, spaced = check_names()
    assert {long.id, spaced.id} == {"orchestration.E006"}
    assert long.msg == f"the name of the workflow '{'a' * 61}' has 61 characters; at most 60 fit"
    assert "call it 'two_words'" in spaced.hint


def test_action_that_replaces_a_method_of_the_engine_is_found(monkeypatch):
    class Bank(Agent):
        name = "bank"

        @action
        async def close(self, call):
            """Do it."""

        @action
        async def call(self, call):
            """Do it: the name is free."""

    monkeypatch.setattr(registry, "agents", {"bank": Bank})
    (error,) = check_agents()
    assert (error.id, "'close'" in error.msg) == ("orchestration.E013", True)


def test_mistyped_guarded_field_is_found(monkeypatch):
    class Cashier(Agent):
        name = "cashier"

        @action(accepts={"properties": {"amount": {}}}, guarded=("amount", "amuont"))
        async def charge(self, call):
            """Do it."""

    monkeypatch.setattr(registry, "agents", {"cashier": Cashier})
    (error,) = check_agents()
    assert error.id == "orchestration.E012"
    assert "guards 'amuont', which it does not accept; did you mean 'amount'?" in error.msg
