from django.conf import settings

from orchestration.api import HttpAgent, Step, Workflow, action, field, register, result


class Greeter(HttpAgent):
    name = "greeter"
    base_url = settings.SANDBOX_URL

    @action
    async def greet(self, call):
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})


register(Greeter)
register(
    Workflow(
        name="greet",
        steps=[
            Step(name="hello", agent="greeter", action="greet", request={"to": field("name")}),
            Step(
                name="again",
                agent="greeter",
                action="greet",
                after=["hello"],
                request={"to": field("name"), "heard": result("hello", "id")},
            ),
        ],
    )
)
