"""One housekeeper of several that takes operations on until nothing is left to send."""

import os
import sys
import time

import django

PATIENCE = 30.0


def main(how: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.db.models import QuerySet

    from orchestration.cluster import leader_election
    from orchestration.models import Operation
    from orchestration.operations import runner
    from orchestration.operations.runner import advance
    from tests.support.together import together

    if how in {"without-locks", "without-transaction"}:
        QuerySet.select_for_update = lambda self, **_: self
    if how == "without-transaction":
        runner._turn = runner._turn.__wrapped__
    # both say that they are the leader: nothing but the locks keeps them apart
    leadership = leader_election.acquire("housekeeper-1", name=leader_election.HOUSEKEEPER)
    together()
    until = time.monotonic() + PATIENCE
    while Operation.objects.filter(ended_at=None, waiting__gt=0).exists():
        assert time.monotonic() < until
        advance(leadership, reach=60.0)


if __name__ == "__main__":
    main(sys.argv[1])
