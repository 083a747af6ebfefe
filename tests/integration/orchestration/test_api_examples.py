"""Each name that users call from `orchestration.api`: its docstring has an example, which works."""

import doctest
import inspect
from enum import Enum

import pytest

from orchestration import api, checks, registry
from orchestration.testing.outcomes import done

pytestmark = pytest.mark.django_db(transaction=True)
PUBLIC = {name: getattr(api, name) for name in api.__all__}
CALLED = {
    name: thing
    for name, thing in PUBLIC.items()
    if callable(thing)
    and not (inspect.isclass(thing) and issubclass(thing, Enum | BaseException))
    and not inspect.iscoroutinefunction(thing)  # is called as the function that its name ends with
}


@pytest.fixture
def problems(monkeypatch, run):
    """Return what is wrong with the example of something; what it declares ends with the test."""
    run.script("greeter.greet", done(id="g-1"))
    api.ensure_application("hotel", "sas_hotel", description="Rooms", scopes=[api.READ_STATUS])

    def problems(thing):
        names = {"__name__": __name__, "run": run, **PUBLIC}
        text = inspect.cleandoc(thing.__doc__ or "")
        example = doctest.DocTestParser().get_doctest(text, names, thing.__name__, None, 0)
        if not example.examples:
            return "it has no example"
        printed = []
        doctest.DocTestRunner(verbose=False).run(example, out=printed.append)
        printed += [*checks.check_agents(), *checks.check_workflows(), *checks.check_names()]
        return "\n".join(map(str, printed))

    with monkeypatch.context() as patched:  # until the audit of the run
        for name, declared in vars(registry).items():
            if isinstance(declared, dict | list) and not name.startswith("__"):
                patched.setattr(registry, name, declared.copy())
        yield problems


@pytest.mark.parametrize("name", CALLED)
def test_example_works(problems, name):
    assert problems(CALLED[name]) == ""


UNKNOWN_AGENT = 'register(Workflow(name="w", steps=[Step(name="a", agent="gretr", action="b")]))'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (">>> 1 + 2\n2", "Got:\n    3"),
        (">>> unknown()", "NameError"),
        ("Return two.", "it has no example"),
        (f">>> {UNKNOWN_AGENT}", "names agent 'gretr'"),
    ],
)
def test_example_that_fails_or_is_missing_is_noticed(problems, text, problem):
    assert problem in problems(type("Documented", (), {"__doc__": text}))
