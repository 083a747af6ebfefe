"""One scheduler of several: claims until nothing is left, and prints what it was given."""

import os
import sys

import django


def main(by: str, how: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from orchestration.transitions.gates import contested
    from tests.support.engine import claimed_beside_others
    from tests.support.together import together
    from tests.support.unlocked import CLAIM_LOCKS, unguard, unlock

    if how != "with-locks":
        unlock(*CLAIM_LOCKS)
    if how == "without-guards":
        unguard()
    together()
    while (requests := claimed_beside_others(by)) or contested(["greeter"]):
        print("\n".join(str(request.step) for request in requests), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
