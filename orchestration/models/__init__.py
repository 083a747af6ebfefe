"""The state store: what the engine must never lose (P1, P5, P6)."""

from .alert import Alert
from .application import Application, ApplicationRole, ApplicationToken
from .audit import AuditRun
from .export import Export
from .gate import Gate
from .history import Attempt, AttemptEvidence, Event
from .hold import Hold
from .inbox import DeadLetter, StatusMessage, Submission
from .incident import Incident, IncidentHit, IncidentHour, IncidentTally
from .join import Join
from .notification import Notification, NotificationChannel
from .operation import Operation, OperationItem
from .person import AccountTie, SoloAct
from .policy import FairnessWeight, Policy
from .process import ClockJump, JumpedTime, Lease, Worker
from .request import TaskRequest
from .retention import RemovedTask, RetentionPolicy
from .rollup import GateRollUp, RollUpMark, StepRollUp, TaskRollUp
from .saved import SavedView
from .schedule import Schedule
from .statestore import StateStore
from .step import Step
from .step_policy import StepPolicy
from .supervisor_policy import SupervisorPolicy
from .task import Task
from .undo import UndoRequest
from .wait import ExternalId, Wait
