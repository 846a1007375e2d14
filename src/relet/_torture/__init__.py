"""`relet torture`: runs workers, producers and an operator, injects faults, and checks the history that they leave.

history    the events of all processes, one file for each process
settings   the settings of a run, shared by its processes
record     triggers that record each change of a job in the database
facts      what the shop does and the checker knows
shop       the app: tasks that use every feature, and record their attempts
clock      the clock of a worker, which faults move
producer   enqueues jobs
operator   cancels, pauses, resumes, completes, deletes and signals them
requests   those of the operator to the HTTP API
processes  starts the processes of a run, and starts them again when they have ended
proxy      stands between a process and PostgreSQL, and disturbs its connections
plan       which fault strikes when, from a seed
faults     the kinds of faults
load       the history as a whole, read after the run
jobs       the history by job, and which faults explain a lost lease
check      the invariants of jobs
recovery   the invariants of recovery: attempts, backoff, rates, processes
waiting    the invariant of jobs that wait beside a free worker
run        a whole run
"""
