"""Compute steps that need no agent, by a plain function of their request.

The function is looked up by workflow and step when the step runs, so a deploy also fixes it for tasks
under way.
"""

import logging
import time
from typing import Any, Never

from django.db import connection

from .. import conf, registry
from ..database import clock
from ..messaging.messages import Reply, Request
from ..payloads import typed
from ..states import Outcome
from ..tracing.subject import about
from .errors import Rejected
from .evidence import evidence

logger = logging.getLogger(__name__)

FAILED = "compute_failed"


def perform(workflow: str, request: Request, by: str) -> Reply | None:
    """Compute a step's result; return the reply, or None if no function is declared.

    An exception becomes a refusal, as the same code would raise it again. The function cannot use the
    database: the transaction belongs to the scheduler.
    """
    compute = registry.function(workflow, request.name)
    if compute is None:
        return None
    started, begun = clock.now(), time.perf_counter()
    raised: Exception | None = None
    try:
        with connection.execute_wrapper(_refuse):
            types = typed.types_of(compute, position=0)
            payload = typed.read(request.payload, types.takes) if types.takes else request.payload
            name = getattr(compute, "__name__", request.name)
            result = typed.result(compute(payload), types.gives, name)
        # a result that cannot be stored fails here, alone
        return _reply(request, by, started, result=result).verified()
    except Rejected as refusal:
        fault = refusal
    except Exception as error:  # a function may raise anything; others go on
        named = (workflow, request.name, request.reference)
        logger.exception("%s.%s failed on %s", *named, extra=about(request))
        fault, raised = Rejected(FAILED, f"{type(error).__name__}: {error}"), error
    finally:
        if (took := time.perf_counter() - begun) > conf.SLOW_COMPUTE_S:
            logger.warning(
                "%s.%s took %.3f s on %s: meanwhile the transaction kept its locks",
                workflow, request.name, took, request.reference, extra=about(request),
            )  # fmt: skip
    return _reply(request, by, started, fault=fault).altered(evidence=evidence(None, raised))


def _refuse(*_: Any) -> Never:
    raise RuntimeError("a computed step cannot use the database")


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
