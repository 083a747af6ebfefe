"""Loads DBOS by its queue: `python -m bench.peers.dbos_queue`; with `bank` or `parcels`, by those flows."""

import os
import sys
from collections.abc import Iterable, Sequence

import psycopg  # type: ignore[import-not-found]
import sqlalchemy  # type: ignore[import-not-found]
from dbos import DBOSClient  # type: ignore[import-not-found]

from bench.client import Client, serve

URL = os.environ["PEER_DATABASE_URL"]


class Queue:
    """Enqueues workflows in batches, and reads their states from the database."""

    workflow = "three_calls"

    def __init__(self) -> None:
        self.engine = sqlalchemy.create_engine(
            sqlalchemy.make_url(URL).set(drivername="postgresql+psycopg")
        )
        self.client = DBOSClient(system_database_engine=self.engine)
        self.rows = psycopg.connect(URL, autocommit=True)

    def submit(self, references: Sequence[str]) -> None:
        """Enqueue with explicit ids, as an application would to avoid duplicates."""
        with self.engine.begin() as connection:
            for reference in references:
                self.client.enqueue_in_transaction(
                    connection,
                    {
                        "workflow_name": self.workflow,
                        "queue_name": "bench",
                        "workflow_id": reference,
                        "application_name": "bench",
                    },
                    reference,
                )

    def finished(self, references: Iterable[str]) -> set[str]:
        """Select the states of workflows."""
        rows = self.rows.execute(
            "SELECT workflow_uuid FROM dbos.workflow_status"
            " WHERE workflow_uuid = ANY(%s) AND status = 'SUCCESS'",
            [list(references)],
        )
        return {reference for (reference,) in rows}

    def settled(self, run: str, count: int) -> bool:
        """Check for unfinished work, which an index makes cheap; count once when there is none."""
        left = self.rows.execute(
            "SELECT 1 FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') LIMIT 1"
        )
        if left.fetchone():
            return False
        row = self.rows.execute(
            "SELECT count(*) FROM dbos.workflow_status"
            " WHERE starts_with(workflow_uuid, %s) AND status = 'SUCCESS' AND name = %s",
            [f"{run}-", self.workflow],
        ).fetchone()
        if row != (count,):
            raise RuntimeError(f"{row} of {count} workflows of {run} succeeded")
        return True


class Bank(Queue):
    """Enqueues orders, and sends at once what the bank says of each."""

    workflow = "bank"

    def submit(self, references: Sequence[str]) -> None:
        """Enqueue all, then send all messages, as the bank's webhooks would."""
        super().submit(references)
        for reference in references:
            self.client.send(reference, {"paid": True}, "bank", idempotency_key=reference)


class Parcels(Queue):
    """Enqueues orders of three parcels; each parcel is a child."""

    workflow = "parcels"


FLOWS = {"bank": Bank, "parcels": Parcels}

if __name__ == "__main__":
    serve(Client(FLOWS.get(sys.argv[-1], Queue)()))
