"""Facts that the shop and the checker share."""

from __future__ import annotations

MAX_RUNNING = {"limited": 3}  # by queue
MAX_RUNNING_PER_GROUP = {"grouped": 2}  # by queue, for each of its groups
MAX_RUNNING_OF_GROUP = {("partly", "narrow"): 1}  # by queue and group; other groups of the queue have no limit
ORDERED = "default"  # a queue without limits: claims take its jobs in their order
RATES = {"rated": (10, 1.0)}  # by queue: so many starts within any so many seconds
#: Tasks whose jobs no producer enqueues: successors, follow-ups, jobs of a schedule.
MADE_BY_OTHERS = ("next_link", "apologise", "tick")
#: Tasks whose results are not the version of their attempts: their chains go on with other jobs.
CONTINUED = ("first_link", "next_link")
SCHEDULED = "tick"  # the task that a schedule enqueues
FOLLOWED, FOLLOW_UP = "hopeless", "apologise"  # the task that has a follow-up, and the follow-up
BY_OPERATOR = -1  # the result of jobs that the operator completes
WINDOWED, WINDOW = "w", 1.0  # how unique keys with a window begin, and its seconds
REPLACED = "r"  # how unique keys begin under which a later call replaces the arguments of a waiting job
LONGEST_BACKOFF = 0.5  # seconds
WAITS_FOR_SIGNALS = "signalled"  # the task whose jobs wait for longer than a backoff
TENANT = "north"
GATEWAYS = 2
REMOTE = "@"  # in the names of workers that reach the store by a gateway
NEED_DATABASE = ("pay",)  # tasks that those do not run
REMOTE_WORKERS = (2, 3)  # those of the workers that reach the store by a gateway
GATEWAY_STARTS_WITHIN = 8.0  # seconds: how long a gateway that was killed may be away
WORKERS = "worker"  # how the names of the workers of the store begin; that of the tenant has another
POLL_INTERVAL = 1.0  # seconds: that of workers, at most
FEW_ATTEMPTS = 2  # a worker that runs no more has free slots
SHUTDOWN_TIMEOUT = 3.0  # seconds that workers let their attempts run after SIGTERM
