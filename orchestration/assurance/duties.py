"""What the housekeeper does for assurance."""

from ..api import register_duty
from .audit.schedule import REPORT_LATE_AUDITS, RING_FOR_AUDIT
from .retention.records import REMOVE_RECORDS
from .retention.removal import REMOVE_TASKS

for duty in (RING_FOR_AUDIT, REPORT_LATE_AUDITS, REMOVE_TASKS, REMOVE_RECORDS):
    register_duty(duty)
