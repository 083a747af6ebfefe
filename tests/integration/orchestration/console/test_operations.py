"""The pages of bulk operations: the dry run, its confirmation, progress, and actions."""

import pytest
from django.urls import reverse

from orchestration.models import Incident, Operation, OperationItem, Step, SupervisorPolicy, Task
from tests.support.engine import irreversible, new_task, reply_to
from tests.support.operations import advance, answer, begin, confirmed, failed, running
from tests.support.operators import browser, person
from tests.support.page import POLL, conflict_of, page, poll_of, query_count

pytestmark = pytest.mark.django_db
MAY = ("operate", "see_personal", "resubmit", "correct", "undo", "hold", "bulk")


@pytest.fixture
def ann():
    return browser(person("ann", *MAY))


def bob(*more):
    return browser(person("bob", *MAY, *more))


def view(client, operation, query=""):
    return client.get(reverse("ops:operation", args=[operation.id]) + query)


def shown_to(client, operation, query=""):
    return page(view(client, operation, query))


def figures(shown) -> list[str]:
    """Return the counts of a dry run: eligible, money, partly undone, skipped by reason."""
    return [figure.only("b").text for figure in shown.all("li.figure")]


def posts(shown, operation, what) -> bool:
    """Return whether a page has a form or a button for an action."""
    address = reverse(f"ops:operation_{what}", args=[operation.id])
    return bool(shown.all(f'[action="{address}"]') + shown.all(f'[formaction="{address}"]'))


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
    def test_operation_in_three_clicks(self, ann):
        tasks = failed(3)
        operation = choose(ann, tasks)
        assert operation.state == "draft"
        shown = shown_to(ann, operation)
        assert figures(shown) == ["3"]
        assert shown.rows() == [["greeter.greet", "3"]]
        assert not OperationItem.objects.exists()
        assert confirm(ann, operation).status_code == 303
        assert shown_to(ann, operation).only("#cancel")
        begin(operation)
        advance(operation)
        advance(operation)
        answer(reply_to)
        advance(operation)
        shown = shown_to(ann, operation)
        assert shown.only(".ops-now").only(".badge.success")
        assert shown.only(".ops-now").numbers() == [3, 3]  # resubmitted, fixed
        assert not posts(shown, operation, "pause")
        assert shown.only("[data-reason]").text == "it is mended"

    def test_dry_run_requires_a_reason(self, ann):
        operation = choose(ann, failed(1))
        response = confirm(ann, operation, reason="")
        assert response.status_code == 422
        assert page(response).only(".wrong")["id"] == "id_reason_error"
        assert Operation.objects.get().state == "draft"

    @pytest.mark.parametrize("rate", ["0", "-1", "1001", "nan", "much", ""])
    def test_invalid_rate_is_refused(self, ann, rate):
        operation = choose(ann, failed(1))
        assert confirm(ann, operation, rate=rate).status_code == 422

    def test_sample_runs_before_the_rest(self, ann):
        tasks = failed(3)
        operation = choose(ann, tasks)
        confirm(ann, operation, first="sample")
        operation.refresh_from_db()
        assert (operation.sample, operation.items) == (1, 1)
        begin(operation)
        advance(operation)
        answer(reply_to)
        advance(operation)
        assert shown_to(ann, operation).only("form.strip.success")
        assert do(ann, "likewise", operation).status_code == 303
        again = Operation.objects.last()
        assert (again.state, again.sample, again.selection) == ("draft", None, operation.selection)
        assert again.preview["eligible"] == 2
        assert again.preview["skipped"] == {"no step is in error": 1}

    def test_untried_cause_starts_with_a_sample_of_one(self, ann):
        failed(3)
        incident = Incident.objects.get()
        operation = choose(ann, incident=incident.id)
        assert (operation.sample, operation.preview["eligible"]) == (1, 3)
        assert operation.incident == incident
        assert shown_to(ann, operation).only('#id_first[value="sample"][checked]')
        confirm(ann, operation, first="sample")
        assert choose(ann, incident=incident.id).sample is None

    def test_done_by_hand_requires_a_result(self, ann):
        operation = choose(ann, failed(2), "by_hand")
        refused = confirm(ann, operation)
        assert refused.status_code == 422
        assert ">null<" not in refused.text.replace("\n", "")
        assert confirm(ann, operation, result="[1]").status_code == 422
        assert confirm(ann, operation, result='{"id": "1"}').status_code == 303
        begin(operation)
        advance(operation)
        assert advance(operation).fixed == 2

    def test_grown_selection_is_shown_again(self, ann):
        failed(2)
        incident = Incident.objects.get()
        operation = choose(ann, incident=incident.id)
        failed(1)
        response = confirm(ann, operation)
        assert response.status_code == 409
        shown = page(response)
        assert shown.only(".errors")
        assert shown.only('[name="reason"]')["value"] == "it is mended"
        assert figures(shown) == ["3"]
        assert not OperationItem.objects.exists()
        assert confirm(ann, operation).status_code == 303

    def test_dry_run_is_refreshed(self, ann):
        operation = choose(ann, [new_task()])
        assert shown_to(ann, operation).only("#nothing-eligible")
        answer(lambda request: reply_to(request, "rejected"))
        assert do(ann, "look", operation).status_code == 303
        assert figures(shown_to(ann, operation)) == ["1"]


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
    def test_invalid_choice_is_refused_with_a_message(self, ann, data):
        response = ann.post(reverse("ops:operation_new"), data, follow=True)
        assert response.redirect_chain
        assert not Operation.objects.exists()
        assert page(response).only("#messages").all(".error")

    def test_search_results_are_selected(self, ann):
        failed(2)
        failed(1, "bad_address")
        new_task()
        counts = {
            "q=": 3,
            "q=error:bad_address": 1,
            "q=state:error error:no_route": 2,
            "error=no_route": 2,
            "q=state:processed": 0,
        }
        for query, count in counts.items():
            assert choose(ann, query=query).preview["eligible"] == count, query

    def test_step_search_selects_only_matching_steps(self, ann):
        (task,) = failed(1)
        other = task.steps.get(name="again")
        Step.objects.filter(id=other.id).update(
            process_state="error", alert=task.steps.get(name="hello").alert
        )
        assert choose(ann, [task]).preview["eligible"] == 2
        assert choose(ann, query="q=step:hello").preview["eligible"] == 1

    def test_second_submit_of_a_page_does_not_confirm_a_grown_selection(self, ann):
        failed(1)
        operation = choose(ann, query="q=state:error")
        assert operation.preview["eligible"] == 1
        failed(2)
        for _ in range(2):
            assert confirm(ann, operation, shown=1).status_code == 409
        operation.refresh_from_db()
        assert (operation.state, operation.preview["eligible"]) == ("draft", 3)
        assert shown_to(ann, operation).only('[name="shown"]')["value"] == "3"
        assert confirm(ann, operation, shown="").status_code == 409
        assert confirm(ann, operation, shown=3).status_code == 303

    @pytest.mark.parametrize("query", ["q=nonsense:1", "q=attempts:many", 'q="'])
    def test_invalid_search_is_refused(self, ann, query):
        data = {"act": "hold", "query": query}
        response = ann.post(reverse("ops:operation_new"), data, follow=True)
        assert page(response).only("#messages").all(".error")
        assert not Operation.objects.exists()

    def test_unknown_incident_is_404(self, ann):
        assert choose(ann, incident=9).status_code == 404

    def test_bulk_action_requires_the_permission_of_the_single_action(self):
        client = browser(person("pat", "operate", "bulk", "resubmit"))
        assert choose(client, failed(1), "undo").status_code == 403
        operation = choose(bob(), Task.objects.all(), "undo")
        assert confirm(client, operation).status_code == 403
        assert not posts(shown_to(client, operation), operation, "confirm")


class TestForcing:
    def look(self, client, operation, **more):
        return client.post(reverse("ops:operation_look", args=[operation.id]), more)

    def test_forced_undo_shows_irreversible_steps_and_needs_consent(self):
        lead = bob("force_undo")
        operation = choose(lead, [irreversible(new_task()), new_task()], "undo")
        shown = shown_to(lead, operation)
        assert ["again", "they heard it", "1"] in shown.rows()
        assert shown.only("#skipped")["data-skipped"] == "1"
        assert self.look(lead, operation, force="on").status_code == 303
        shown = shown_to(lead, operation)
        assert figures(shown)[0] == "2"
        assert shown.only("li.figure.warm").only("b").text == "1"  # partly undone
        assert ["again", "they heard it", "1"] in shown.rows()
        assert shown.all("#skipped") == []
        hesitant = confirm(lead, operation)
        assert hesitant.status_code == 422
        assert page(hesitant).only("#id_force_error")
        assert confirm(lead, operation, reason="", force="on").status_code == 422
        assert confirm(lead, operation, force="on").status_code == 303
        shown = shown_to(lead, operation)
        assert shown.only("[data-forced]").text.endswith("again (1)")
        assert "not undone: again" in [row[3] for row in shown.section("h-items").rows()]
        assert Operation.objects.get().forced

    def test_refreshed_preview_keeps_the_force_and_can_drop_it(self):
        lead = bob("force_undo")
        operation = choose(lead, [irreversible(new_task())], "undo")
        self.look(lead, operation, force="on")
        assert shown_to(lead, operation).only('[name="force"][value="on"]')
        self.look(lead, operation)
        operation.refresh_from_db()
        assert (operation.forced, operation.preview["eligible"]) == (False, 0)
        # an earlier page still shows that it is forced
        self.look(lead, operation, force="on")
        assert view(lead, operation).status_code == 200
        self.look(lead, operation)
        assert confirm(lead, operation, shown=1, force="on").status_code == 409

    def test_forced_bulk_undo_requires_the_force_permission(self, ann):
        operation = choose(ann, [irreversible(new_task()), new_task()], "undo")
        shown = shown_to(ann, operation)
        assert ["again", "they heard it", "1"] in shown.rows()
        assert shown.all('[name="force"]') == []
        assert self.look(ann, operation, force="on").status_code == 403
        self.look(bob("force_undo"), operation, force="on")
        assert not posts(shown_to(ann, operation), operation, "confirm")
        assert confirm(ann, operation, force="on").status_code == 403
        assert Operation.objects.get().state == "draft"

    def test_only_an_undo_can_be_forced(self):
        operation = choose(lead := bob("force_undo"), [new_task()], "hold")
        assert self.look(lead, operation, force="on").status_code == 303
        assert not Operation.objects.get().forced

    def test_forced_undo_can_require_an_approval(self):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 1})
        lead = bob("force_undo", "approve")
        operation = choose(lead, [irreversible(new_task()), new_task()], "undo")
        assert shown_to(lead, operation).all("#approval") == []
        self.look(lead, operation, force="on")
        assert shown_to(lead, operation).only("#approval")
        confirm(lead, operation, force="on")
        assert Operation.objects.get().state == "approval"
        assert do(lead, "approve", operation).status_code == 409


class TestTwoUsers:
    def test_second_user_approves(self, ann):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 1})
        operation = choose(ann, failed(2))
        assert shown_to(ann, operation).only("#approval")
        confirm(ann, operation)
        assert not posts(shown_to(ann, operation), operation, "approve")
        assert do(ann, "approve", operation).status_code == 403
        lead = bob("approve")
        assert posts(shown_to(lead, operation), operation, "approve")
        assert do(lead, "approve", operation, "seen").status_code == 303
        shown = shown_to(ann, operation)
        assert shown.only("[data-approved-by]").text.startswith("bob, ")
        assert shown.only("#cancel")

    def test_approval_by_the_author_is_refused(self):
        SupervisorPolicy.objects.update_or_create(id=1, defaults={"approve_items": 0})
        lead = bob("approve")
        operation = choose(lead, failed(1))
        confirm(lead, operation)
        response = do(lead, "approve", operation)
        assert "cannot approve it" in conflict_of(response)[1]

    def test_second_action_names_the_first_user(self, ann):
        operation = running(failed(2), rate=1)
        advance(operation)
        assert do(ann, "pause", operation, "look first").status_code == 303
        response = do(bob(), "pause", operation)
        actor, sentence = conflict_of(response)
        assert actor == "ann"
        assert "paused it" in sentence
        assert "look first" in sentence

    def test_double_confirmation_counts_once(self, ann):
        operation = choose(ann, failed(1))
        assert confirm(ann, operation).status_code == 303
        response = confirm(ann, operation)
        actor, sentence = conflict_of(response)
        assert actor == "ann"
        assert "confirmed it" in sentence

    def test_operation_is_cancelled_before_it_starts(self, ann):
        operation = confirmed(failed(1))
        response = ann.post(reverse("ops:operation_abort", args=[operation.id]), follow=True)
        assert page(response).only("#messages").only(".success")
        operation.refresh_from_db()
        assert operation.state == "aborted"


class TestPages:
    def test_viewer_sees_operations_and_cannot_act(self):
        operation = running(failed(2), rate=1)
        advance(operation)
        viewer = browser(person("vic", "operate"))
        assert shown_to(viewer, operation).only("#live").all('[method="post"]') == []
        for what in ("pause", "resume", "abort", "approve", "look", "confirm"):
            assert do(viewer, what, operation).status_code == 403

    def test_search_by_personal_data_is_redacted_without_permission(self, ann):
        failed(1)
        operation = choose(ann, query="q=ada@example.org state:error")
        viewer = browser(person("vic", "operate"))
        assert "ada@example.org" in view(ann, operation).text
        assert "ada" not in view(viewer, operation).text.split('id="content"')[1]

    def test_personal_search_cannot_select_without_permission(self, ann):
        failed(1)
        operation = choose(ann, query="q=contact:ada@example.org")
        blind = browser(person("vic", "operate", "bulk", "resubmit"))
        assert do(blind, "look", operation).status_code == 409
        assert confirm(blind, operation).status_code == 409

    def test_items_are_filtered_by_state_and_paged(self, ann):
        operation = running(failed(60), rate=1000)
        advance(operation)
        advance(operation)
        items = shown_to(ann, operation).section("h-items")
        assert len(items.rows()) == 50
        last = OperationItem.objects.order_by("id")[49].id
        following = items.only('[rel="next"]')["href"]
        assert following == f"?after={last}#h-items"
        rest = shown_to(ann, operation, f"?after={last}").section("h-items").rows()
        assert len({row[1] for row in items.rows() + rest}) == 60
        assert shown_to(ann, operation, "?state=fixed").section("h-items").rows() == []
        assert view(ann, operation, "?state=nonsense&after=x").status_code == 200

    def test_held_items_are_called_held(self, ann):
        operation = running([new_task()], "hold")
        advance(operation)
        shown = shown_to(ann, operation)
        assert shown.section("h-items").only(".badge.success").text == "held"
        assert shown.only('[href="?state=fixed#h-items"]').text.startswith("Held")

    def test_texts_that_people_typed_are_hidden_without_permission(self, ann):
        operation = choose(ann, failed(1))
        confirm(ann, operation, reason="Ada Lovelace rang")
        begin(operation)
        advance(operation)
        viewer = browser(person("vic", "operate"))
        lists = [reverse("ops:operations"), reverse("ops:audit")]
        for client, seen in ((ann, True), (viewer, False)):
            of_task = reverse("ops:task", args=[OperationItem.objects.get().task_id])
            for address in [reverse("ops:operation", args=[operation.id]), of_task, *lists]:
                shown = client.get(address)
                assert shown.status_code == 200
                assert ("Lovelace" in shown.text) == seen

    def test_list_is_filtered(self, ann):
        retry, hold = confirmed(failed(1)), confirmed([new_task()], "hold", actor="bob")
        address = reverse("ops:operations")
        for query, expected in [
            ("", {retry, hold}), ("?act=hold", {hold}), ("?actor=ann", {retry}),
            ("?state=waiting", {retry, hold}), ("?state=open", {retry, hold}), ("?state=ended", set()),
            (f"?before={hold.id}", {retry}), ("?state=nonsense&before=x", {retry, hold}),
        ]:  # fmt: skip
            shown = ann.get(address + query)
            assert {row for row, _, _ in shown.context["rows"]} == expected

    def test_drafts_are_not_listed(self, ann):
        choose(ann, failed(1))
        assert page(ann.get(reverse("ops:operations"))).only("#live").rows() == []

    def test_unknown_operation_is_404(self, ann):
        assert ann.get(reverse("ops:operation", args=[9])).status_code == 404
        assert do(ann, "pause", Operation(id=9)).status_code == 404

    def test_poll_without_changes_is_empty(self, ann):
        operation = confirmed(failed(1))
        address = poll_of(view(ann, operation))
        assert ann.get(address, headers=POLL).status_code == 204


@pytest.mark.parametrize("name", ["operations", "operation"])
def test_queries_are_independent_of_the_number_of_operations(ann, name):
    operation = running(failed(1))
    advance(operation)
    address = reverse(f"ops:{name}", args=[operation.id] if name == "operation" else [])
    few = query_count(ann, address)
    OperationItem.objects.bulk_create(
        OperationItem(operation=operation, task=task, seen="error", state="skipped", reason="x",
                      ended_at=task.created_at)
        for task in failed(60)
    )  # fmt: skip
    for _ in range(10):
        confirmed(failed(1))
    assert query_count(ann, address) == few
    assert Step.objects.exists()
