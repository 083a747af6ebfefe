"""The pages of bulk operations: the dry run, its confirmation, progress, and what people do to one."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration.models import Incident, Operation, OperationItem, Step, SupervisorPolicy, Task
from tests.engine import irreversible, new_task, reply_to
from tests.operations import advance, answer, begin, confirmed, failed, running
from tests.operators import browser, person, words

pytestmark = pytest.mark.django_db
MAY = ("operate", "see_personal", "resubmit", "correct", "undo", "hold", "bulk")


@pytest.fixture
def ann():
    return browser(person("ann", *MAY))


def bob(*more):
    return browser(person("bob", *MAY, *more))


def page(client, operation, query=""):
    return client.get(reverse("ops:operation", args=[operation.id]) + query)


def choose(client, tasks=(), act="resubmit", **more):
    data = {"act": act, "task": [str(task.id) for task in tasks], **more}
    response = client.post(reverse("ops:operation_new"), data)
    return Operation.objects.last() if response.status_code == 303 else response


def confirm(client, operation, **changes):
    operation.refresh_from_db()
    shown = operation.preview["eligible"]
    data = {"reason": "it is mended", "rate": "1000", "first": "all", "shown": shown, **changes}
    return client.post(reverse("ops:operation_confirm", args=[operation.id]), data)


def do(client, what, operation, reason=""):
    address = reverse(f"ops:operation_{what}", args=[operation.id])
    return client.post(address, {"reason": reason})


class TestFromChoiceToEnd:
    def test_three_presses_and_a_true_end(self, ann):
        tasks = failed(3)
        operation = choose(ann, tasks)
        assert operation.state == "draft"
        shown = words(page(ann, operation))
        assert "3 failed steps" in shown
        assert "greeter.greet 3" in shown
        assert "Nothing has been done yet" in shown
        assert not OperationItem.objects.exists()
        assert confirm(ann, operation).status_code == 303
        shown = page(ann, operation)
        assert "Take it back" in shown.text
        assert "It begins" in shown.text
        begin(operation)
        advance(operation)
        advance(operation)
        answer(reply_to)
        advance(operation)
        shown = words(page(ann, operation))
        assert "3 resubmitted: 3 fixed." in shown
        assert "Pause" not in shown
        assert "it is mended" in shown

    def test_the_dry_run_asks_for_a_reason(self, ann):
        operation = choose(ann, failed(1))
        response = confirm(ann, operation, reason="")
        assert response.status_code == 422
        assert "Say why" in response.text
        assert Operation.objects.get().state == "draft"

    @pytest.mark.parametrize("rate", ["0", "-1", "1001", "nan", "much", ""])
    def test_a_rate_is_a_rate(self, ann, rate):
        operation = choose(ann, failed(1))
        assert confirm(ann, operation, rate=rate).status_code == 422

    def test_a_sample_first_and_then_the_rest(self, ann):
        tasks = failed(3)
        operation = choose(ann, tasks)
        confirm(ann, operation, first="sample")
        operation.refresh_from_db()
        assert (operation.sample, operation.items) == (1, 1)
        begin(operation)
        advance(operation)
        answer(reply_to)
        advance(operation)
        assert "it worked" in words(page(ann, operation))
        assert do(ann, "likewise", operation).status_code == 303
        again = Operation.objects.last()
        assert (again.state, again.sample, again.selection) == ("draft", None, operation.selection)
        assert again.preview["eligible"] == 2
        assert again.preview["skipped"] == {"nothing of it is in error": 1}

    def test_a_cause_that_was_never_tried_is_tried_with_one(self, ann):
        failed(3)
        incident = Incident.objects.get()
        operation = choose(ann, incident=incident.id)
        assert (operation.sample, operation.preview["eligible"]) == (1, 3)
        assert operation.incident == incident
        shown = page(ann, operation)
        assert 'value="sample" id="id_first" checked' in shown.text
        confirm(ann, operation, first="sample")
        assert choose(ann, incident=incident.id).sample is None

    def test_done_by_hand_takes_a_result(self, ann):
        operation = choose(ann, failed(2), "by_hand")
        refused = confirm(ann, operation)
        assert refused.status_code == 422
        assert ">null<" not in refused.text.replace("\n", "")
        assert confirm(ann, operation, result="[1]").status_code == 422
        assert confirm(ann, operation, result='{"id": "1"}').status_code == 303
        begin(operation)
        advance(operation)
        assert advance(operation).fixed == 2

    def test_what_grew_is_shown_again(self, ann):
        failed(2)
        incident = Incident.objects.get()
        operation = choose(ann, incident=incident.id)
        failed(1)
        response = confirm(ann, operation)
        assert response.status_code == 409
        assert "More is selected by now" in response.text
        assert "it is mended" in response.text
        assert "3 failed steps" in words(response)
        assert not OperationItem.objects.exists()
        assert confirm(ann, operation).status_code == 303

    def test_looking_again(self, ann):
        task = new_task()
        operation = choose(ann, [task])
        assert "no item is eligible" in page(ann, operation).text
        answer(lambda request: reply_to(request, "rejected"))
        assert do(ann, "look", operation).status_code == 303
        assert "1 failed step " in words(page(ann, operation))


class TestChoosing:
    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"act": "resubmit"},
            {"act": "resubmit", "task": "nonsense"},
            {"act": "explode", "task": "00000000-0000-0000-0000-000000000000"},
            {"act": "resubmit", "incident": "x"},
        ],
    )
    def test_nonsense_is_refused_with_a_sentence(self, ann, data):
        response = ann.post(reverse("ops:operation_new"), data, follow=True)
        assert response.redirect_chain
        assert not Operation.objects.exists()
        assert 'class="strip error"' in response.text

    def test_what_a_search_finds(self, ann):
        failed(2)
        failed(1, "bad_address")
        new_task()
        found = {
            "q=": 3,
            "q=error:bad_address": 1,
            "q=state:error error:no_route": 2,
            "error=no_route": 2,
            "q=state:processed": 0,
        }
        for query, count in found.items():
            assert choose(ann, query=query).preview["eligible"] == count, query

    def test_of_a_search_by_steps_only_those_steps(self, ann):
        (task,) = failed(1)
        other = task.steps.get(name="again")
        Step.objects.filter(id=other.id).update(
            process_state="error", alert=task.steps.get(name="hello").alert
        )
        assert choose(ann, [task]).preview["eligible"] == 2
        assert choose(ann, query="q=step:hello").preview["eligible"] == 1

    def test_a_second_press_of_the_same_page_does_not_confirm_what_has_grown(self, ann):
        failed(1)
        operation = choose(ann, query="q=state:error")
        assert operation.preview["eligible"] == 1
        failed(2)
        for _ in range(2):
            assert confirm(ann, operation, shown=1).status_code == 409
        operation.refresh_from_db()
        assert (operation.state, operation.preview["eligible"]) == ("draft", 3)
        assert 'name="shown" value="3"' in page(ann, operation).text
        assert confirm(ann, operation, shown="").status_code == 409
        assert confirm(ann, operation, shown=3).status_code == 303

    @pytest.mark.parametrize("query", ["q=nonsense:1", "q=attempts:many", 'q="'])
    def test_a_search_that_means_nothing(self, ann, query):
        data = {"act": "hold", "query": query}
        response = ann.post(reverse("ops:operation_new"), data, follow=True)
        assert 'class="strip error"' in response.text
        assert not Operation.objects.exists()

    def test_an_incident_that_is_not_there(self, ann):
        assert choose(ann, incident=9).status_code == 404

    def test_whoever_may_not_do_it_to_one_may_not_do_it_to_many(self):
        client = browser(person("pat", "operate", "bulk", "resubmit"))
        assert choose(client, failed(1), "undo").status_code == 403
        operation = choose(bob(), Task.objects.all(), "undo")
        assert confirm(client, operation).status_code == 403
        assert "Leave it" not in page(client, operation).text


class TestForcing:
    def look(self, client, operation, **more):
        return client.post(reverse("ops:operation_look", args=[operation.id]), more)

    def test_who_may_sees_what_stands_and_decides_that_the_rest_is_undone(self):
        lead = bob("force_undo")
        operation = choose(lead, [irreversible(new_task()), new_task()], "undo")
        shown = words(page(lead, operation))
        assert "again they heard it 1" in shown
        assert "1 task is passed over" in shown
        assert "all the same" not in shown
        assert self.look(lead, operation, force="on").status_code == 303
        shown = words(page(lead, operation))
        assert "2 tasks" in shown
        assert "1 of these only in part" in shown
        assert "What cannot be undone, and stands" in shown
        hesitant = confirm(lead, operation)
        assert hesitant.status_code == 422
        assert "say that the rest shall be" in hesitant.text
        assert confirm(lead, operation, reason="", force="on").status_code == 422
        assert confirm(lead, operation, force="on").status_code == 303
        shown = words(page(lead, operation))
        assert "Forced what cannot be undone stands: again (1)" in shown
        assert "again stands" in shown
        assert Operation.objects.get().forced

    def test_looking_again_keeps_it_and_it_can_be_left(self):
        lead = bob("force_undo")
        operation = choose(lead, [irreversible(new_task())], "undo")
        self.look(lead, operation, force="on")
        shown = page(lead, operation).text
        assert shown.count('name="force" value="on"') == 1
        self.look(lead, operation)
        operation.refresh_from_db()
        assert (operation.forced, operation.preview["eligible"]) == (False, 0)
        # a page from before that still says it is forced
        self.look(lead, operation, force="on")
        shown_before = page(lead, operation)
        assert shown_before.status_code == 200
        self.look(lead, operation)
        assert confirm(lead, operation, shown=1, force="on").status_code == 409

    def test_who_may_not_force_one_may_not_force_many(self, ann):
        operation = choose(ann, [irreversible(new_task()), new_task()], "undo")
        shown = page(ann, operation)
        assert "again they heard it 1" in words(shown)
        assert 'name="force"' not in shown.text
        assert self.look(ann, operation, force="on").status_code == 403
        self.look(bob("force_undo"), operation, force="on")
        assert ">Undo</button>" not in page(ann, operation).text
        assert confirm(ann, operation, force="on").status_code == 403
        assert Operation.objects.get().state == "draft"

    def test_nothing_else_is_forced(self):
        operation = choose(lead := bob("force_undo"), [new_task()], "hold")
        assert self.look(lead, operation, force="on").status_code == 303
        assert not Operation.objects.get().forced

    def test_the_rules_for_a_second_person_are_those_of_all_operations(self):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 1})
        lead = bob("force_undo", "approve")
        operation = choose(lead, [irreversible(new_task()), new_task()], "undo")
        assert "has to approve it" not in words(page(lead, operation))
        self.look(lead, operation, force="on")
        assert "a second person has to approve it" in words(page(lead, operation))
        confirm(lead, operation, force="on")
        assert Operation.objects.get().state == "approval"
        assert do(lead, "approve", operation).status_code == 409


class TestTwoPeople:
    def test_a_second_person_approves(self, ann):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 1})
        operation = choose(ann, failed(2))
        assert "a second person has to approve it" in words(page(ann, operation))
        confirm(ann, operation)
        shown = page(ann, operation)
        assert "somebody other than" in words(shown)
        assert ">Approve<" not in shown.text
        assert do(ann, "approve", operation).status_code == 403
        lead = bob("approve")
        assert ">Approve<" in page(lead, operation).text
        assert do(lead, "approve", operation, "seen").status_code == 303
        shown = words(page(ann, operation))
        assert "Approved by bob" in shown
        assert "Take it back" in shown

    def test_nobody_approves_their_own(self):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 0})
        lead = bob("approve")
        operation = choose(lead, failed(1))
        confirm(lead, operation)
        response = do(lead, "approve", operation)
        assert response.status_code == 409
        assert "another person" in response.text

    def test_the_second_to_act_is_told_who_was_first(self, ann):
        operation = running(failed(2), rate=1)
        advance(operation)
        assert do(ann, "pause", operation, "look first").status_code == 303
        response = do(bob(), "pause", operation)
        assert response.status_code == 409
        assert "ann paused it" in words(response)
        assert "look first" in words(response)

    def test_two_confirmations_are_one(self, ann):
        operation = choose(ann, failed(1))
        assert confirm(ann, operation).status_code == 303
        response = confirm(ann, operation)
        assert response.status_code == 409
        assert "confirmed it" in words(response)

    def test_taken_back(self, ann):
        operation = confirmed(failed(1))
        response = ann.post(reverse("ops:operation_abort", args=[operation.id]), follow=True)
        assert "It was taken back: nothing was done." in words(response)


class TestLooking:
    def test_a_viewer_sees_and_cannot_touch(self):
        operation = running(failed(2), rate=1)
        advance(operation)
        viewer = browser(person("vic", "operate"))
        shown = page(viewer, operation)
        assert shown.status_code == 200
        assert 'method="post"' not in shown.text.split('id="live"')[1]
        for what in ("pause", "resume", "abort", "approve", "look", "confirm"):
            assert do(viewer, what, operation).status_code == 403

    def test_a_search_by_personal_data_is_not_told_to_who_may_not_see_it(self, ann):
        failed(1)
        operation = choose(ann, query="q=ada@example.org state:error")
        viewer = browser(person("vic", "operate"))
        assert "ada@example.org" in page(ann, operation).text
        assert "ada" not in page(viewer, operation).text.split('id="content"')[1]

    def test_whoever_may_not_search_by_it_may_not_act_by_it(self, ann):
        failed(1)
        operation = choose(ann, query="q=contact:ada@example.org")
        blind = browser(person("vic", "operate", "bulk", "resubmit"))
        assert do(blind, "look", operation).status_code == 409
        assert confirm(blind, operation).status_code == 409

    def test_items_by_state_and_page_by_page(self, ann):
        operation = running(failed(60), rate=1000)
        advance(operation)
        advance(operation)
        first = page(ann, operation)
        assert first.text.count("after attempt 1") == 50
        last = OperationItem.objects.order_by("id")[49].id
        assert f"after={last}#" in first.text
        assert page(ann, operation, f"?after={last}").text.count("after attempt 1") == 10
        assert "No item is in that state" in page(ann, operation, "?state=fixed").text
        assert page(ann, operation, "?state=nonsense&after=x").status_code == 200

    def test_the_list_is_narrowed(self, ann):
        one, two = confirmed(failed(1)), confirmed([new_task()], "hold", actor="bob")
        address = reverse("ops:operations")
        for query, found in [
            ("", {one, two}), ("?act=hold", {two}), ("?actor=ann", {one}),
            ("?state=waiting", {one, two}), ("?state=open", {one, two}), ("?state=ended", set()),
            (f"?before={two.id}", {one}), ("?state=nonsense&before=x", {one, two}),
        ]:  # fmt: skip
            shown = ann.get(address + query)
            assert {row for row, _, _ in shown.context["rows"]} == found

    def test_drafts_are_nobodys_business(self, ann):
        choose(ann, failed(1))
        assert "Nothing was done in bulk yet" in words(ann.get(reverse("ops:operations")))

    def test_nothing_to_see(self, ann):
        assert ann.get(reverse("ops:operation", args=[9])).status_code == 404
        assert do(ann, "pause", Operation(id=9)).status_code == 404

    def test_a_poll_that_finds_nothing_new(self, ann):
        operation = confirmed(failed(1))
        shown = page(ann, operation)
        seen = shown.text.split("seen=")[1].split('"')[0]
        poll = {"HX-Request": "true"}
        address = reverse("ops:operation", args=[operation.id])
        assert ann.get(address, {"seen": seen}, headers=poll).status_code == 204


@pytest.mark.parametrize("name", ["operations", "operation"])
def test_the_pages_cost_the_same_however_many_there_are(ann, name):
    def cost():
        with CaptureQueriesContext(connection) as queries:
            assert ann.get(address).status_code == 200
        return len(queries)

    operation = running(failed(1))
    advance(operation)
    address = reverse(f"ops:{name}", args=[operation.id] if name == "operation" else [])
    few = cost()
    OperationItem.objects.bulk_create(
        OperationItem(operation=operation, task=task, seen="error", state="skipped", reason="x",
                      ended_at=task.created_at)
        for task in failed(60)
    )  # fmt: skip
    for _ in range(10):
        confirmed(failed(1))
    assert cost() == few
    assert Step.objects.exists()
