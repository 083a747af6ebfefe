"""A worker process for the functions of the tests, on the tests' database and Redis."""

import os
import sys

import django


def main(queue: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.core.management import call_command

    from orchestration.functions import workflow

    workflow.declare()
    call_command("work", queue)


if __name__ == "__main__":
    main(sys.argv[1])
