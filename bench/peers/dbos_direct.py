"""Loads DBOS in its fastest way: workflows started in the process that runs them.

`python -m bench.peers.dbos_direct`: without queue, client or polling.
"""

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

from bench.direct import Direct, serve
from bench.peers.dbos_app import CONCURRENCY, launch, run, three_calls


async def run_task(reference: str) -> None:
    """Run one workflow durably: by its explicit id it runs once, even if started again."""
    with SetWorkflowID(reference):
        handle = await DBOS.start_workflow_async(three_calls, reference)
    await handle.get_result()


async def main() -> None:
    """Execute commands from standard input until it ends."""
    await launch()
    await serve(Direct(run_task, CONCURRENCY))


if __name__ == "__main__":
    run(main())
