"""A process that serves queues, and soon counts as silent where one of its threads hangs."""

import os
import sys

import django


def main(queues: list[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.core.management import call_command

    from orchestration import conf

    conf.HEARTBEAT_INTERVAL_S = 0.2
    conf.STALLED_AFTER_S = float(os.environ["STALLED_AFTER_S"])
    conf.WORKER_TTL_S = 16  # it waits for a doorbell for 15 s less
    call_command("work", *queues)


if __name__ == "__main__":
    main(sys.argv[1:])
