"""An application beside the shop, for drills: its steps end later, have children, or run by a schedule."""

WAIT_S = 8.0  # of a step that waits for its time, or for what never comes
