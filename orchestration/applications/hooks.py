"""Webhooks of agents' services: /hooks/<agent>/ verifies one, keeps what it reports, and answers at once.

What comes in is a stranger's until `receive` has verified it: until then it costs no query and no row, and
the answer does not say what was wrong with it. The log does.
"""

import logging
import threading
from collections import Counter
from http import HTTPStatus
from json import dumps
from uuid import UUID, uuid5

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .. import conf, registry
from ..agents.base import Agent
from ..agents.payload_schemas import Invalid
from ..agents.webhook import InvalidWebhook, Reported, UnverifiedWebhook, Webhook
from ..alerting import alerts
from ..cluster import crash_points
from ..cluster.debounce import Pauses
from ..database import sql
from ..models.alert import Severity
from ..payloads.text import printable
from .requests import post_reports

logger = logging.getLogger(__name__)
EVENTS = UUID("8e2f5ad0-5f0f-4f34-9b0c-0c5d27a7a3c1")  # of the ids of requests, by services' events
REFUSED, FAILING = "refused", "failing"
TITLES = {
    REFUSED: "{}: webhooks are refused",
    FAILING: "{}: its code fails on webhooks",
}


@csrf_exempt
@require_POST
def receive(request: HttpRequest, agent: str) -> HttpResponse:
    """Take a webhook: 202 once what it reports is stored; the sender repeats what gets a 5xx."""
    kind = registry.agents.get(agent)
    if kind is None or not kind.can_receive():
        return _answer(HTTPStatus.NOT_FOUND)
    length = request.headers.get("content-length") or ""
    if not (length.isascii() and length.isdigit()):
        return _answer(HTTPStatus.LENGTH_REQUIRED)
    if len(length) > len(str(conf.MAX_WEBHOOK_BYTES)) or int(length) > conf.MAX_WEBHOOK_BYTES:
        logger.warning("a webhook to %s has %.20s bytes, and is refused", agent, length)
        return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        body = request.read()
    except OSError:  # the sender went away
        return _answer(HTTPStatus.BAD_REQUEST)
    return _answer(_status(kind, Webhook(body=body, headers=request.headers)))


def take(kind: type[Agent], webhook: Webhook) -> list[Reported]:
    """Store what a webhook reports, all of it or nothing, and return it; raises what `receive` does."""
    reports = list(kind.receive(webhook))
    requests: dict[UUID, Reported] = {}
    for report in reports:
        if not isinstance(report, Reported):
            raise TypeError(f"receive returned a {type(report).__name__}, not Reported")
        event = dumps([kind.name, report.id, report.of])
        requests.setdefault(uuid5(EVENTS, event), report)
    if requests:
        post_reports(requests, agent=kind.name, actor=kind.name)
        crash_points.reached("webhook.after_commit")
    return reports


def _status(kind: type[Agent], webhook: Webhook) -> HTTPStatus:
    """Take a webhook; return what its sender is answered."""
    agent = kind.name
    try:
        take(kind, webhook)
    except UnverifiedWebhook as error:
        logger.warning("a webhook to %s is not verified: %s", agent, printable(str(error)))
        _alert(agent, REFUSED, str(error))
        return HTTPStatus.UNAUTHORIZED
    except (InvalidWebhook, Invalid) as error:
        logger.warning("a webhook to %s is invalid: %s", agent, printable(str(error)))
        return HTTPStatus.BAD_REQUEST
    except Exception as error:  # an agent's code may raise anything
        if isinstance(error, Error) and (sql.is_unavailable(error) or sql.is_busy(error)):
            logger.error("a webhook to %s is not kept: %s", agent, sql.first_line(error))
            return HTTPStatus.SERVICE_UNAVAILABLE
        logger.exception("receive of %s failed", agent)
        _alert(agent, FAILING, type(error).__name__)  # its text may have anything of the webhook
        return HTTPStatus.INTERNAL_SERVER_ERROR
    return HTTPStatus.ACCEPTED


def _answer(status: HTTPStatus) -> HttpResponse:
    response = HttpResponse(f"{status.phrase}\n", status=status, content_type="text/plain")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(conf.WEBHOOK_RETRY_AFTER_S)
    return response


_alerted: Pauses[str] = Pauses()
_uncounted: Counter[str] = Counter()
_counting = threading.Lock()


def _alert(agent: str, what: str, why: str) -> None:
    """Open an alert, or count it again, once in a while: anybody may send what is refused."""
    fingerprint = f"{alerts.WEBHOOK}{agent}/{what}"
    with _counting:
        _uncounted[fingerprint] += 1
        if _alerted.of(fingerprint):
            return
        _alerted.begin(fingerprint, conf.WEBHOOK_ALERT_EVERY_S)
        count = _uncounted.pop(fingerprint)
    try:
        alerts.raise_alert(
            fingerprint,
            severity=Severity.CRITICAL if what == FAILING else Severity.WARNING,
            title=TITLES[what].format(agent),
            detail=sql.storable(why)[: conf.NOTIFICATION_DETAIL_CHARS],
            count=count,
        )
    except Error as error:
        logger.error("the alert about webhooks to %s must wait: %s", agent, sql.first_line(error))
