"""What the housekeeper does for the console."""

from ..api import register_duty
from .statistics.rollups import ROLL_UP

register_duty(ROLL_UP)
