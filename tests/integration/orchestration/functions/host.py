"""A worker process for the functions of the tests, on the tests' database and Redis."""

import os
import sys

import django


def main(queue: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from orchestration.functions import workflow

    for name in workflow.queues():
        settings.RQ_QUEUES[f"tasks.{name}"] = settings.RQ_QUEUES["scheduler"]
    call_command("work", queue)


if __name__ == "__main__":
    main(sys.argv[1])
