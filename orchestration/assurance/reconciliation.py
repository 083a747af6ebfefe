"""After a restore to an earlier time: settle what the services did that the tables do not know of.

Run while no worker does. Afterwards the workers settle the steps in doubt as they settle any others:
under the same keys, for which the services answer with what they did.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import TemporaryFile
from typing import TypeVar

from orchestration import conf, registry, submission
from orchestration.agents.taking_back import Undo, take_back
from orchestration.alerting import alerts
from orchestration.alerting.alerts import LATE_EFFECT, AlertReport
from orchestration.assurance.audit import restored, snapshot
from orchestration.assurance.audit.restored import Effect, Findings, LostTask
from orchestration.database import sql
from orchestration.messaging.messages import Mode, Request
from orchestration.models import Policy
from orchestration.models.alert import Severity
from orchestration.payloads.keys import step_key
from orchestration.payloads.placeholders import KEYS, Unresolved, resolve
from orchestration.states import Direction
from orchestration.transitions.restored import doubt, resume
from orchestration.transitions.undo import undo
from orchestration.workflows.step import UNDECLARED, Step

logger = logging.getLogger(__name__)
Item = TypeVar("Item")

REASON = "reconciled after a restore"
# The commit time of the last transaction that a recovery replayed; null on a server that had none. One that
# has run for long was promoted long ago, and not restored.
RESTORED_TO = """
SELECT pg_last_xact_replay_timestamp()
WHERE pg_postmaster_start_time() > (SELECT clock_timestamp()) - interval '1 day'
"""
WORKED_SINCE = """
SELECT EXISTS (SELECT FROM orchestration_attempt WHERE ended_at > %(moment)s + interval '1 minute')
"""


@dataclass(kw_only=True)
class Reconciled:
    """What was done, in numbers, and what is left for a person."""

    adopted: int = 0
    doubted: int = 0
    undone: int = 0
    taken_back: int = 0
    left: list[str] = field(default_factory=list)


def restored_to() -> datetime | None:
    """Return to which moment this server was recovered, if it was since it last started."""
    rows = sql.run(RESTORED_TO, {})
    moment: datetime | None = rows[0][0] if rows else None
    return moment


def worked_since(moment: datetime) -> bool:
    """Return whether workers have recorded anything since: no restore was to that moment, or they ran."""
    return bool(sql.run(WORKED_SINCE, {"moment": moment})[0][0])


def find(moment: datetime, report: Callable[[str], None]) -> Findings:
    """Compare with the services' ledgers; raise `snapshot.Unreadable` if one cannot be read."""
    with TemporaryFile("w+", newline="", encoding="utf-8") as file:
        listed = snapshot.read_ledgers(file, report)
        with snapshot.with_tables(file), snapshot.reading():
            return restored.find(moment, listed, registry.agents)


def act(
    findings: Findings, moment: datetime, report: Callable[[str], None], *, actor: str
) -> Reconciled:
    """Settle what was found; what fails is left, and another run tries it again."""
    done = Reconciled()
    if findings.adoptable:
        _adopt(findings, done)
        findings = find(moment, report)  # what was done for them is of tasks that are known, now
    _doubt(findings, moment, done, actor)
    for task in findings.undone:
        refusal = undo(task, actor=actor, reason=f"{REASON}: it was undone meanwhile", force=True)
        done.undone += refusal is None
        if refusal is not None:
            done.left.append(f"{task}: was undone meanwhile; here {refusal.value}")
    if findings.undone:
        _doubt(find(moment, report), moment, done, actor)  # their undos were done, too
    _take_back(findings.gone, done)
    done.left += [
        f"{lost.reference}: its steps were undone or resubmitted meanwhile, and its parent makes it again: "
        "hold the parent, and settle it by hand"
        for lost in findings.children
        if not lost.repeatable
    ]
    return done


def _adopt(findings: Findings, done: Reconciled) -> None:
    """Take the submissions of lost tasks that are here again, each under its task's old id.

    Their steps are repeated under the same keys then.
    """
    for lost in findings.adoptable:
        try:
            done.adopted += submission.adopt(lost.workflow, lost.reference, lost.id)
        except Exception as error:  # its application's hook may raise anything; others go on
            logger.exception("%s cannot be taken again", lost.reference)
            done.left.append(f"{lost.reference}: {type(error).__name__}: {sql.first_line(error)}")


def _doubt(findings: Findings, moment: datetime, done: Reconciled, actor: str) -> None:
    """Continue steps as in doubt, also those in error."""
    done.doubted += len(findings.steps)
    for batch in _batches(list(findings.steps.items())):
        doubt(dict(batch), moment, actor=actor, reason=REASON)
    if still := resume(findings.steps, actor=actor, reason=REASON):
        done.left.append(f"{still} steps stay in error: see their alerts")


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Return the items in batches of the engine's size."""
    return (items[at : at + conf.BATCH_SIZE] for at in range(0, len(items), conf.BATCH_SIZE))


def _take_back(gone: Sequence[LostTask], done: Reconciled) -> None:
    """Undo the effects of tasks without a trace here, and raise an alert about each of them."""
    policies = Policy.objects.in_bulk()
    undos, standing = [], []
    for lost in gone:
        sent, stays = _undos(lost, policies)
        undos.append(sent)
        standing.append(stays)
    troubles = take_back(undos)
    for batch in _batches(list(zip(gone, undos, standing, troubles, strict=True))):
        alerts.raise_all([_alert(lost, stays, trouble) for lost, _, stays, trouble in batch])
        for lost, sent, _, trouble in batch:
            done.taken_back += 0 if trouble else len(sent)
            if trouble:
                done.left.append(f"{lost.reference or lost.id}: {trouble}")
            else:
                alerts.close(_fingerprint(lost, "stands"))


def _undos(lost: LostTask, policies: Mapping[str, Policy]) -> tuple[list[Undo], list[str]]:
    """Return the undos of what stands of a lost task, last step first, and what has none."""
    sent: list[tuple[int, Undo]] = []
    stays = []
    keys = {
        effect.step: step_key(lost.id, effect.step, "do", effect.generation)
        for effect in lost.effects
    }
    results = {effect.step: effect.result or {} for effect in lost.effects}
    for effect in lost.effects:
        place, step = _declared(effect)
        if step is None or step.undo in {None, UNDECLARED}:
            stays.append(effect.step)
            continue
        try:
            payload = resolve(step.undo_request, {}, {**results, KEYS: keys})
        except Unresolved as error:
            stays.append(f"{effect.step} ({error})")
            continue
        policy = policies.get(effect.agent) or Policy()
        sent.append(
            (place, (effect.agent, policy.time_allowed, _request(lost, step, payload, policy)))
        )
    return [call for _, call in sorted(sent, key=lambda pair: -pair[0])], stays


def _declared(effect: Effect) -> tuple[int, Step | None]:
    """Return the declaration of a step and its place, if all workflows that have it agree on its undo."""
    declarations = [
        (place, step)
        for workflow in registry.workflows.values()
        for place, step in enumerate(workflow.steps)
        if (step.agent, step.name) == (effect.agent, effect.step)
    ]
    undos = {(step.undo, repr(step.undo_request)) for _, step in declarations}
    return declarations[0] if len(undos) == 1 else (0, None)


def _request(lost: LostTask, step: Step, payload: dict[str, object], policy: Policy) -> Request:
    """Return the request that the task's own undo step would have sent: the service knows its key."""
    return Request(
        step=1, task=lost.id, name=step.name, attempt=1, action=str(step.undo),
        key=step_key(lost.id, step.name, Direction.UNDO, 1), reference=lost.reference,
        complete_by=0.0, call_timeout=policy.call_timeout, tries=policy.tries, payload=payload,
        mode=Mode.DO, generation=1,
    )  # fmt: skip


def _alert(lost: LostTask, stays: Iterable[str], trouble: str) -> AlertReport:
    named = lost.reference or str(lost.id)
    if trouble:
        return AlertReport(
            fingerprint=_fingerprint(lost, "stands"),
            severity=Severity.CRITICAL,
            title=f"{named} was lost with a restore, and what was done for it stands",
            detail=f"{trouble}. Run `manage.py reconcile --act` again, or settle it by hand.",
        )
    left = ", ".join(stays)
    return AlertReport(
        fingerprint=_fingerprint(lost, "lost"),
        severity=Severity.WARNING,
        title=f"{named} was lost with a restore, and what could be taken back was",
        detail=f"What stays: {left}." if left else "Nothing stays. Tell whom it was for.",
    )


def _fingerprint(lost: LostTask, what: str) -> str:
    return f"{LATE_EFFECT}{lost.id}/{what}"
