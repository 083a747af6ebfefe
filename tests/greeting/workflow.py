from django.conf import settings

from orchestration.api import HttpAgent, Step, Workflow, action, field, key, register, result


class Greeter(HttpAgent):
    name = "greeter"
    base_url = settings.SANDBOX_URL

    @action
    async def greet(self, call):
        return await self.post(call, "/bench/calls", body=call.payload, expect={"id": str})

    @action
    async def take_back(self, call):
        return await self.post(call, "/bench/undo", body=call.payload, expect={"effect": str})


register(Greeter)


def address(request):
    """Return the salutation."""
    return {"text": f"Dear {request['name'].strip().title()}"}


def report(request):
    """Summarize an invitation."""
    return {"text": f"“{request['text']}” was sent", "sent": request["sent"]}


register(
    Workflow(
        name="invite",
        steps=[
            Step(name="address", compute=address, request={"name": field("name")}),
            Step(
                name="send",
                agent="greeter",
                action="greet",
                after=["address"],
                request={"to": result("address", "text")},
                undo="take_back",
                undo_request={"key": key("send")},
            ),
            Step(
                name="report",
                compute=report,
                after=["send"],
                request={"text": result("address", "text"), "sent": result("send", "id")},
            ),
        ],
    )
)
register(
    Workflow(
        name="greet",
        steps=[
            Step(
                name="hello",
                agent="greeter",
                action="greet",
                request={"to": field("name")},
                undo="take_back",
                undo_request={"key": key("hello")},
            ),
            Step(
                name="again",
                agent="greeter",
                action="greet",
                after=["hello"],
                request={"to": field("name"), "heard": result("hello", "id")},
                undo="take_back",
                undo_request={"key": key("again")},
            ),
        ],
    )
)
