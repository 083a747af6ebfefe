"""Sizes and times of the engine that an admin does not need to tune.

`_S` at the end of a name: seconds. A size is a number of rows, messages or processes.
"""

BATCH_SIZE = 200  # rows or messages of one transaction: bounds what it locks and what it rolls back

# Queues and turns
AGED_SHARE = 0.1  # of the places: for work that has waited long, so that low priority never starves
# from then on a submission has waited long; for steps, the agent's policy says when
AGED_AFTER_S = 60.0
# of one transaction: replies to requests of these tasks are returned meanwhile
REPORTS_AT_A_TIME = 50
# a doorbell may ring again after this, answered or not: a second worker then helps
DOORBELL_TTL_S = 5
# minimum between two turns of a worker, but for schedulers: under load, messages gather to a batch
TURN_INTERVAL_S = 0.01
# an agent with other calls under way waits this long for more replies to send with the first
GATHER_REPLIES_S = 0.001
# a scheduler asks services about this many awaited steps, then no more for a while: each question costs as
# much as a step, and plain work must not wait behind thousands that are due at once
LOOKS_AT_A_TIME, LOOKS_INTERVAL_S = 10, 0.1
SLOW_LOOK_S = 0.005  # a look along an index that takes longer may have passed many dead entries
INBOX_IDLE_S = 1.0  # a worker waits this long for another message; must be below REDIS_TIMEOUT_S
RERING_AFTER_S = 1.0  # the leader rings again for work that waits longer: its doorbell may be lost
MAX_INBOX_MESSAGES = 200_000  # of one inbox; the oldest ones beyond it have expired anyway

# Locks
LOCK_TIMEOUT_S = 0.25  # in a transaction that many others wait for
SWEEP_LOCK_TIMEOUT_S = 1.0  # in every other transaction of a leader
LOCKED_TASK_RETRY_S = 0.1  # before the next look at a request whose task is locked
LOCKED_GATE_RETRY_S = 0.25  # before the next look at a gate that another session has locked
# of a reply whose task is locked: the engine holds a lock only briefly
LOCKED_IMMEDIATE_RETURNS = 5
LOCKED_WAIT_S = 0.5  # before the first later return; doubles with each
LOCKED_WAIT_CAP_S = 8.0
BLOCKING_ALERT_AFTER_S = 30.0  # another session that locks the engine's rows for longer is an alert
CLAIM_PAUSE_S = 5.0  # of an agent whose claim fails: its error must not cost every turn

# Schedules
SCHEDULE_LATE_S = 60.0  # what is due for longer, or cannot be submitted for longer, is an alert

# Audits
# no run has ended for long: an alert after this time, as one may end soon once the system runs again
LATE_AUDIT_ALERT_AFTER_S = 300.0

# Leaders and their sweeps
LEASE_S = 6.0  # a leader that does not renew its lease for this long is replaced
SWEEP_STALLED_AFTER_S = 15.0  # without progress for this long, a sweep's lease is not renewed
DUTY_BUDGET_S = 3.0  # after this a duty starts no new batch: the next sweep continues
DUTY_INTERVAL_S = 5.0  # between two runs of a duty that costs too much for every sweep
# between two looks of the alerts' worker for leaders and notifications
LEADER_CHECK_INTERVAL_S = 5.0
OPERATIONS_BUDGET_S = 1.0  # of each sweep, for bulk operations: other duties must not wait longer
OPERATION_ITEMS_PER_SWEEP = 5_000  # items under way that one sweep checks, of each operation

# Retention
REMOVAL_BATCH_SIZE = 50  # tasks of one transaction, each with some ten rows
REMOVAL_LOOK = 250  # tasks that one look for old ones reads at most, of any workflow
REMOVAL_BUDGET_S = 0.2  # of each sweep, while there is more to remove
RECORDS_INTERVAL_S = 60.0  # between two looks for old rows that belong to no task

# Workers
HEARTBEAT_INTERVAL_S = 3.0  # between two heartbeats of a process
WORKER_DEAD_AFTER_S = 10.0  # three heartbeats are missing: the worker counts as dead
NO_WORKERS_AFTER_S = 7.0  # without any heartbeat for this long, pages say that no worker runs
# attempts may be silent for longer while replies are unread or cannot be sent
UNREAD_ALLOWANCE_S = 10.0

# Clocks
CLOCK_JUMP_S = 30.0  # a clock that differs by more has jumped, or is wrong
# a clock that went back by more has shown times twice, which is noted: more than clocks drift in an hour
CLOCK_BACK_S = 2.0
# the alert about a jump stays open for this long, so that people see it
CLOCK_JUMP_ALERT_S = 3600.0

# Steps that are computed
# a function that takes longer is logged: the transaction keeps its locks meanwhile
SLOW_COMPUTE_S = 0.1
COMPUTE_BUDGET_S = 0.25  # of a turn; other steps wait for the next turn
COMPUTE_RETRY_S = 30.0  # before the next try of a step whose function is not deployed

# Agents
LOOP_BEAT_S = 0.25  # between two signs of life of an agent's event loop
LOOP_BLOCKED_AFTER_S = 1.0  # a loop that is silent for longer is blocked
LOOP_BLOCKED_LONG_S = 5.0  # after this it is logged, whether it goes on or not
STALLED_AFTER_S = 60.0  # a worker whose thread shows no sign of life for longer counts as silent
LOOP_STACK_FRAMES = 12  # of the code that blocks it, in the log
PAUSE_ALERT_S = 180.0  # a service that asks for a longer pause is an alert
LOOP_ALERT_EVERY_S = 60.0  # at most, an alert about it, by each process and action
LOOP_ALERT_LIFE_S = 3600.0  # without another time, the alert is closed
REPLY_MARGIN_S = 0.1  # an agent stops this much before complete_by: the reply needs time to travel
SEND_RETRY_FOR_S = 60.0  # a process keeps its replies for this long while Redis is away
SEND_RETRY_INTERVAL_S = 0.2  # between two tries to send them
MAX_PERFORMERS = 8  # processes of an agent while a request kills or blocks its own; normally one
PERFORMER_IDLE_S = 10.0  # a performer without requests ends after this
PERFORMERS_KEPT_S = 60.0  # several performers run for this long after the last such request
PERFORMER_BLOCKED_AFTER_S = 1.0  # a performer blocked for longer loses its other requests
MAX_BLOCKED_PERFORMERS = 4  # blocked ones that may run until the time of their request is over
MAX_UNEXPLAINED_DEATHS = 2  # of its process that a request survives while no request's code ran
PASS_ON_WAIT_S = 0.2  # before a request for an unknown action goes back; doubles with each time
PASS_ON_WAIT_CAP_S = 5.0
MAX_PASS_ONS = 20  # then the step fails: no running release knows the action

# Redis
SEARCH_TIMEOUT_S = 5.0  # of each statement of a search of tasks: then the page asks to narrow it
REDIS_TIMEOUT_S = 2.0  # of one command, so that a frozen Redis blocks no process for long
REDIS_PAGE_TIMEOUT_S = 1.0  # of a page's look at Redis: a page can do without the answer
# after a timeout: until then other commands fail at once and do not wait again
REPLICA_BACKOFF_S = (
    10.0  # pages read from the primary for this long after the replica did not answer
)
REDIS_BACKOFF_S = 3.0
REDIS_RECONNECT_S = 1.0  # before a worker asks an unavailable Redis for a job again
WORKER_TTL_S = 30  # RQ: a worker waits for a job for 15 s less than this, then tidies up

# Work that failed
RETRY_WAIT_S = 1.0  # before the second try; doubles with each failure
RETRY_WAIT_CAP_S = 300.0
ALERT_AFTER_FAILURES = 8  # some minutes: until then a deploy may explain them
FAILING_WORKFLOW_PAUSE_S = 5.0  # of a workflow whose submissions fail one after the other
# at most, an alert about unsigned messages, by each process
FORGED_ALERT_EVERY_S = 60.0
DEAD_LETTER_WAITS_S = (
    1.0,
    5.0,
    25.0,
)  # before a dead letter returns the first, second and last time

# Notifications about alerts
NOTIFICATION_BATCH_SIZE = 20  # sent at once
NOTIFICATION_LEASE_S = 120.0  # a notification whose sender died is sent again after this
NOTIFICATION_WAIT_S = 10.0  # before the second try; doubles with each
NOTIFICATION_WAIT_CAP_S = 3600.0
NOTIFICATION_MAX_AGE_S = 86_400.0  # an older notification is given up at its next failure
NOTIFICATION_DETAIL_CHARS = 1000  # of an alert's detail that a notification carries

# Webhooks of services
MAX_WEBHOOK_BYTES = 262_144  # larger ones are refused unread
WEBHOOK_RETRY_AFTER_S = 5  # after which a sender may repeat what could not be stored
# at most, an alert about refused or failing webhooks, by each process and agent; it closes after a quiet hour
WEBHOOK_ALERT_EVERY_S = 60.0

# Pushed status messages
PUSHES_PER_APPLICATION = 20  # sent at once to one application
PUSHES_IN_TOTAL = 60  # sent at once to all applications together
MIN_PUSH_TRIES = 5  # before a message is given up

# Bulk operations
OPERATION_GRACE_S = 10.0  # a confirmed operation starts after this, and can be cancelled until then
MAX_OPERATION_ITEMS = 200_000  # of one operation
DRAFT_TTL_S = 86_400.0  # a dry run that is not confirmed is deleted after this
