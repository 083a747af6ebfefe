"""Steps that need no agent: their result is computed from their request, by a plain function.

The function is found by the names of its workflow and step when the step runs, so a deploy mends a
mistake in it for tasks under way, too.
"""

import logging
import time
from typing import Any, Never

from django.db import connection

from .. import clock, conf, registry
from ..messages import Reply, Request
from ..states import Outcome
from ..workflow import Compute
from .faults import Rejected

logger = logging.getLogger(__name__)

FAILED = "compute_failed"


def perform(workflow: str, request: Request, by: str) -> Reply | None:
    """Compute a step's result; return the reply, or None if no code says how.

    What the function raises is a refusal, as the same code would raise it again. It cannot use the
    database: the transaction is not its own.
    """
    compute = _function(workflow, request.name)
    if compute is None:
        return None
    started, begun = clock.now(), time.perf_counter()
    try:
        with connection.execute_wrapper(_refuse):
            result = compute(request.payload)
        # as it is stored: what cannot be fails here, alone
        return Reply.parse(_reply(request, by, started, result=result).dump())
    except Rejected as refusal:
        fault = refusal
    except Exception as error:  # a function may raise anything; others go on
        logger.exception("%s.%s failed on %s", workflow, request.name, request.reference)
        fault = Rejected(FAILED, f"{type(error).__name__}: {error}")
    finally:
        if (took := time.perf_counter() - begun) > conf.COMPUTED_WITHIN:
            logger.warning(
                "%s.%s took %.3f s on %s: meanwhile the transaction kept its locks",
                workflow, request.name, took, request.reference,
            )  # fmt: skip
    return _reply(request, by, started, fault=fault)


def _function(workflow: str, step: str) -> Compute | None:
    declared = registry.workflows.get(workflow)
    found = (one.compute for one in declared.steps if one.name == step) if declared else iter(())
    return next(found, None)


def _refuse(*_: Any) -> Never:
    raise RuntimeError("a step that is computed has no use of the database")


def _reply(
    request: Request,
    by: str,
    started: float,
    *,
    result: Any = None,
    fault: Rejected | None = None,
) -> Reply:
    return Reply(
        step=request.step,
        task=request.task,
        attempt=request.attempt,
        outcome=(Outcome.REJECTED if fault else Outcome.DONE).value,
        result={} if fault else result,
        code=fault.code if fault else "",
        message=fault.message if fault else "",
        tries=1,
        started=started,
        ended=clock.now(),
        by=by,
        generation=request.generation,
    )
