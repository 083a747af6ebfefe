"""A process that serves queues, with an agent whose code ends its thread."""

import os
import sys

import django


def main(queues: list[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.core.management import call_command

    from tests.greeting.workflow import Greeter

    async def answer(self, request):
        sys.exit("enough")

    Greeter.answer = answer
    call_command("work", *queues)


if __name__ == "__main__":
    main(sys.argv[1:])
