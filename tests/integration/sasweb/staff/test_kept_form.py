"""A form whose session had ended: nothing is done, and after the login it is there as it was typed."""

import pytest
from django.contrib.auth.models import Permission
from django.core import signing
from django.test import Client

from sasweb.staff import kept_form
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person
from tests.support.page import POLL, page
from tests.support.second_factor import PASSWORD, with_app

pytestmark = pytest.mark.django_db
OWN = {"Origin": "http://testserver"}
WHY = "Zürich bank <b>repaired</b> it & more"


@pytest.fixture
def ada():
    return person("ada", "operate", "resubmit", "correct", "acknowledge", "hold")


@pytest.fixture
def step():
    return in_error(new_task("t-1"))


def sent(client, path, fields, *, page_before="", **headers):
    """Send a form as a browser does that is on a page of this site."""
    before = {"Referer": f"http://testserver{page_before}"} if page_before else {}
    return client.post(path, fields, headers={**OWN, **before, **headers})


def log_in(client, shown, user):
    """Log in on the page that a form was answered with."""
    kept = page(shown).one('input[name="kept"]')["value"]
    fields = {"username": user.get_username(), "password": PASSWORD, "next": "/ops/", "kept": kept}
    return client.post("/login/", fields, follow=True)


def value_of(shown, name):
    """Return what stands in a field of the form that is filled in."""
    form = page(shown).one("form[data-opened]")
    field = form.one(f'[name="{name}"]')
    return field.text if field.tag == "textarea" else field["value"]


def test_form_is_filled_in_on_its_page_after_the_login(ada, step):
    client, act = Client(), f"/ops/steps/{step.id}/resubmit/"
    before = f"/ops/tasks/{step.task_id}/"
    shown = sent(client, act, {"attempt": 1, "reason": WHY}, page_before=before)
    assert shown.status_code == 401
    assert page(shown).one('[data-ended="form"]')
    assert "no-store" in shown["Cache-Control"]
    wrong = client.post("/login/", {
        "username": "ada", "password": "wrong", "kept": page(shown).one("[name=\"kept\"]")["value"],
    })  # fmt: skip
    back = log_in(client, wrong, ada)
    assert back.request["PATH_INFO"] == before
    assert value_of(back, "reason") == WHY
    assert page(back).one("form[data-opened]")["action"] == act
    notice = page(back).one("[data-kept]")
    assert "autofocus" in notice.attributes
    step.refresh_from_db()
    assert step.process_state == "error"
    again = page(client.get(before))  # once
    assert again.all("[data-kept]") == []
    token = page(back).one("form[data-opened]").one('[name="csrfmiddlewaretoken"]')["value"]
    fields = {"attempt": 1, "reason": value_of(back, "reason"), "csrfmiddlewaretoken": token}
    assert client.post(act, fields).status_code == 303
    step.refresh_from_db()
    assert step.process_state == "pending"


def test_form_that_was_opened_in_place_is_shown_on_its_own_page(ada, step):
    act = f"/ops/steps/{step.id}/resubmit/?in=failed"
    client = Client()
    shown = sent(client, act, {"attempt": 1, "reason": WHY}, page_before="/ops/agents/")
    back = log_in(client, shown, ada)
    assert value_of(back, "reason") == WHY


def test_form_with_textarea_boxes_and_choices_is_filled_in(ada, step):
    client, act = Client(), f"/ops/steps/{step.id}/change/"
    fields = {"attempt": 1, "reason": WHY, "payload": '\n{"to": "<Ada>"}', "nothing_done": "on"}
    back = log_in(client, sent(client, act, fields, page_before=act), ada)
    form = page(back).one("form[data-opened]")
    assert form.one('[name="reason"]')["value"] == WHY
    boxes = form.all('[name="nothing_done"]')
    assert all("checked" in box.attributes for box in boxes)


def test_press_of_a_button_is_offered_again(ada, step):
    client, act = Client(), f"/ops/alerts/{step.alert_id}/acknowledge/"
    back = log_in(client, sent(client, act, {"note": WHY}, page_before="/ops/runbook/"), ada)
    assert back.request["PATH_INFO"] == "/login/again/"
    form = page(back).one("form[data-once]")
    assert form["action"] == act
    assert form.one('[name="note"]')["value"] == WHY
    assert client.get("/login/again/")["Location"] == "/ops/"


def test_form_of_the_admin_is_filled_in():
    boss = person("boss", is_staff=True, is_superuser=True)
    client, act = Client(), "/admin/auth/group/add/"
    some = [str(one.pk) for one in Permission.objects.all()[:9:4]]
    back = log_in(client, sent(client, act, {"name": WHY, "permissions": some}), boss)
    shown = page(back)
    assert shown.one('[name="name"]')["value"] == WHY
    ticked = [
        one["value"] for one in shown.all('[name="permissions"]') if "checked" in one.attributes
    ]
    assert sorted(ticked) == sorted(some)


def test_form_is_kept_past_the_second_factor(ada, step):
    app = with_app(ada)
    client, act = Client(), f"/ops/steps/{step.id}/resubmit/"
    before = f"/ops/tasks/{step.task_id}/"
    shown = sent(client, act, {"attempt": 1, "reason": WHY}, page_before=before)
    asked = log_in(client, shown, ada)
    assert asked.request["PATH_INFO"] == "/login/code/"
    to = page(asked).one('[name="next"]')["value"]
    back = client.post("/login/code/", {"code": app.code(), "next": to}, follow=True)
    assert value_of(back, "reason") == WHY


def test_form_with_an_old_token_is_shown_again_without_a_login(ada, step):
    """All cookies are of a later login, in another tab."""
    client, act = Client(enforce_csrf_checks=True), f"/ops/steps/{step.id}/resubmit/"
    client.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    fields = {"attempt": 1, "reason": WHY, "csrfmiddlewaretoken": "x" * 64}
    before = f"/ops/tasks/{step.task_id}/"
    in_place = sent(client, act, fields, page_before=before, **POLL)
    assert (in_place.status_code, in_place.content) == (401, b"")
    answer = sent(client, act, fields, page_before=before)
    assert (answer.status_code, answer["Location"]) == (303, before)
    assert value_of(client.get(before), "reason") == WHY
    step.refresh_from_db()
    assert step.process_state == "error"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_form_of_another_site_is_not_kept(ada, step, origin):
    """It would be filled in, ready to be sent, for who has just logged in."""
    act = f"/ops/steps/{step.id}/resubmit/"
    headers = {"Origin": origin} if origin else {}
    shown = Client().post(act, {"attempt": 1, "reason": WHY}, headers=headers)
    assert (shown.status_code, shown["Location"]) == (302, "/login/?next=/ops/")
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    refused = client.post(act, {"attempt": 1, "reason": WHY}, headers=headers)
    assert refused.status_code == 403
    assert page(refused).one('[data-refused="csrf"]')
    assert kept_form.KEY not in client.session


def test_secrets_are_not_kept():
    boss = person("boss", is_staff=True, is_superuser=True)
    client = Client()
    fields = {"username": "eve", "password1": "s3cret-words", "password2": "s3cret-words"}
    shown = sent(client, "/admin/auth/user/add/", fields)
    kept = signing.loads(page(shown).one('[name="kept"]')["value"], salt=kept_form.SALT)
    assert kept["fields"] == [["username", "eve"]]
    back = log_in(client, shown, boss)
    assert page(back).one('[name="username"]')["value"] == "eve"
    assert "s3cret-words" not in back.text


def test_too_much_is_not_kept_and_the_place_is(ada, step):
    client, act = Client(), f"/ops/steps/{step.id}/change/"
    fields = {"reason": "x" * (kept_form.LONGEST + 1)}
    shown = sent(client, act, fields, page_before=act)
    assert len(shown.text) < 10_000
    back = log_in(client, shown, ada)
    assert back.request["PATH_INFO"] == act
    assert (
        page(back).one("form[data-opened]").one('[name="reason"]').attributes.get("value", "") == ""
    )


def test_what_was_typed_is_shown_to_no_other_user(ada, step, settings):
    settings.STAFF_IDLE_MINUTES = 30
    client = browser(ada)
    client.get("/ops/")
    session = client.session
    session["staff"] = {**session["staff"], "seen": 0}
    session.save()
    act = f"/ops/steps/{step.id}/resubmit/"
    shown = sent(client, act, {"attempt": 1, "reason": WHY})
    assert shown.status_code == 401
    bob = person("bob", "operate", "resubmit")
    assert "repaired" not in log_in(client, shown, bob).text
    assert value_of(log_in(Client(), shown, ada), "reason") == WHY


def test_text_that_was_changed_on_its_way_is_not_taken(ada, step):
    client = Client()
    shown = sent(client, f"/ops/steps/{step.id}/resubmit/", {"attempt": 1, "reason": WHY})
    kept = page(shown).one('[name="kept"]')["value"]
    fields = {"username": "ada", "password": PASSWORD, "kept": f"{kept[:-2]}xx", "next": "/ops/"}
    assert client.post("/login/", fields)["Location"] == "/ops/"
    assert kept_form.KEY not in client.session


def test_form_of_another_browser_is_not_restored(ada, step):
    shown = sent(Client(), f"/ops/steps/{step.id}/resubmit/", {"attempt": 1, "reason": WHY})
    other = Client()
    other.get("/login/")
    log_in(other, shown, ada)
    assert kept_form.KEY not in other.session
