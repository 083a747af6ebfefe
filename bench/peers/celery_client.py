"""Loads Celery: `python -m bench.peers.celery_client`."""

from collections.abc import Iterable, Sequence
from typing import Any

from celery import chain  # type: ignore[import-not-found]

from bench.client import Client, serve
from bench.peers.celery_app import DONE, call, done, last_call


class Chains:
    """Submits chains; the last task of a chain pushes its reference to a list."""

    def submit(self, references: Sequence[str]) -> None:
        """Submit chains of immutable tasks, which need no results."""
        for reference in references:
            calls = call.si(reference, 1), call.si(reference, 2), last_call.si(reference)
            chain(*calls).apply_async()

    def finished(self, references: Iterable[str]) -> set[str]:
        """Pop references from the list."""
        ended: Any = done().lpop(DONE, 1000) or []
        return {reference.decode() for reference in ended}.intersection(references)

    def settled(self, run: str, count: int) -> bool:
        """Check the list's length; delete the list when it is complete."""
        _ = run
        if done().llen(DONE) < count:
            return False
        done().delete(DONE)
        return True


if __name__ == "__main__":
    serve(Client(Chains()))
