"""What the shop does and the checker knows."""

from __future__ import annotations

MAX_RUNNING = {"limited": 3}  # by queue
MAX_RUNNING_PER_GROUP = {"grouped": 2}  # by queue, for each of its groups
#: Tasks whose jobs no producer enqueues: successors, follow-ups, jobs of a schedule.
MADE_BY_OTHERS = ("next_link", "apologise", "tick")
#: Tasks whose results are not the version of their attempts: their chains go on with other jobs.
CONTINUED = ("first_link", "next_link")
FOLLOWED, FOLLOW_UP = "hopeless", "apologise"  # the task that has a follow-up, and the follow-up
BY_OPERATOR = "by an operator"  # the result of jobs that the operator completes
WINDOWED, WINDOW = "w", 1.0  # how unique keys with a window begin, and its seconds
