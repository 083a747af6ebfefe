"""Posts greetings by the engine's public face, and nothing else of it."""

import sys

import django


def main(count: int, what: str = "", workflow: str = "greet") -> None:
    django.setup()
    from orchestration.api import submit

    for number in range(count):
        submit(workflow, reference=f"{what}{number}", data={"name": f"guest {number}"})


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
