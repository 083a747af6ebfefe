"""Submit tasks, in a stack's environment: `python -m drill.flows.submit WORKFLOW '{"reference": {…}}'`."""

import json
import sys

import django


def main(workflow: str, tasks: str) -> None:
    """Submit a task with each reference and its input."""
    django.setup()
    from orchestration.api import Posting, submit_many

    submit_many(
        [
            Posting(workflow=workflow, reference=reference, data=data)
            for reference, data in json.loads(tasks).items()
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
