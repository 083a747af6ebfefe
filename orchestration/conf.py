"""Sizes and times of the engine that no admin needs to tune; seconds where they are times."""

BATCH = 200  # rows or messages that one transaction serves
FLAG_LIFE = 5  # after this a doorbell may be rung again, answered or not
PACE = 0.01  # at least this long from turn to turn of a worker: under load, messages gather
LINGER = 1.0  # how long a worker that attends waits for another message; below REDIS_TIMEOUT
UNSERVED = 1.0  # what waits longer than this is rung for by the supervisor
HEARTBEAT = 2.0  # between two signs of life of a worker
ALIVE = 10.0  # a worker not seen for longer counts as dead
LEASE = 6.0  # a leader that does not renew for this long is replaced
REPLY_MARGIN = 0.1  # an agent stops this much before complete_by: the reply needs its way
SEND_PATIENCE = 5.0  # how long an agent tries to get its replies to a broken Redis
REDIS_TIMEOUT = 2.0  # of one command, so that a frozen Redis hangs nobody for long
WORKER_TTL = 20  # RQ: a worker waits a quarter of this for a job, then looks around
INBOX_LIMIT = 200_000  # messages in one inbox; beyond it the oldest are of no use any more
NOTICES = 20  # notices sent at once
NOTICE_LEASE = 120.0  # a notice whose sender died is sent again after this
NOTICE_WAIT = 10.0  # before the second try; doubles with each
NOTICE_WAIT_CAP = 3600.0
NOTICE_PATIENCE = 86_400.0  # a notice older than this is given up with its next failure
NOTICE_DETAIL = 1000  # characters of an alert's detail that a notice carries
PUSHES = 20  # status messages sent at once to one application
PUSHES_IN_ALL = 60  # and to all of them together
PUSH_TRIES = 5  # at the least, before a message is given up
LOOKOUT = 5.0  # between two looks of the alerts' worker, for a leader and for notices
