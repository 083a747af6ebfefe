"""Submit greetings through orchestration.api, run in a stack's environment."""

import sys

import django


def main(count: int, what: str = "", workflow: str = "greet") -> None:
    django.setup()
    from orchestration.api import submit

    for number in range(count):
        submit(workflow, reference=f"{what}{number}", data={"name": f"guest {number}"})


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
