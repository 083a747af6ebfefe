"""Forms of thresholds that an agent and its steps share: together, they must make sense for each step."""

from typing import Any

from django.core.exceptions import ValidationError

from ... import policies
from ...decisions.step_policy import OF_STEPS, undo_is_too_short
from ...models import Policy, StepPolicy
from .bounds import SettingForm

TOO_SHORT = (
    "An undo must be tried at least as often as what it undoes. With the values of its agent, the step "
    "would have %(values)s."
)
TOO_SHORT_FOR_STEPS = (
    "An undo must be tried at least as often as what it undoes. Steps with values of their own would have: "
    "%(values)s. Change the policies of these steps first."
)
COMPARED = {"failure_threshold", "undo_threshold"}

AS_AGENT = "As the agent's policy says"


class PolicyForm(SettingForm):
    """The form of an agent's policy, which is refused where a step's own values would not fit it."""

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.errors or not COMPARED & set(self.changed_data):
            return  # a release may bring a step that does not fit: all else can be changed still
        agents = policies.thresholds(self.instance)
        own = policies.own_of_steps(agent=self.instance.agent)
        wrong = [
            f"{workflow}/{step}: {values}"
            for (workflow, step), values_of_step in sorted(own.items())
            if (values := undo_is_too_short(agents, values_of_step))
        ]
        if wrong:
            self.add_error(
                None, ValidationError(TOO_SHORT_FOR_STEPS, params={"values": "; ".join(wrong)})
            )


class StepPolicyForm(SettingForm):
    """The form of a step's own values, with its agent's beside each field."""

    instance: StepPolicy

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = Policy.objects.filter(agent=self.instance.agent).first() or Policy()
        self.agents = policies.thresholds(policy)
        for name in OF_STEPS:
            if field := self.fields.get(name):
                value, choices = in_words(getattr(policy, name)), getattr(field, "choices", None)
                if choices:
                    value = f"“{dict(choices)[value]}”"
                    field.choices = [("", AS_AGENT), *list(choices)[1:]]  # type: ignore[attr-defined]
                field.help_text = f"{field.help_text} Empty: the agent's, {value}."

    def _post_clean(self) -> None:
        super()._post_clean()
        if not self.errors and (values := undo_is_too_short(self.agents, self.instance.own)):
            self.add_error(None, ValidationError(TOO_SHORT, params={"values": values}))


def in_words(value: float | str) -> str:
    """Return a threshold as people read it."""
    return value if isinstance(value, str) else f"{value:.10g}"
