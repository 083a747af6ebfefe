"""The stack that has this application, too."""

from drill.stack import Stack


class FlowsStack(Stack):
    """The whole system, with an application that uses all that a step can be."""

    def __init__(self, name: str) -> None:
        super().__init__(name, DJANGO_SETTINGS_MODULE="drill.flows.settings")
