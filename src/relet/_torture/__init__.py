"""`relet torture`: runs workers, producers and an operator, injects faults, and checks the history that they leave.

history    the events of all processes, one file for each process
settings   the settings of a run, shared by its processes
record     triggers that record each change of a job in the database
shop       the app: tasks that use every feature, and record their attempts
producer   enqueues jobs; operator   cancels, pauses, resumes and signals them
proxy      stands between a worker and PostgreSQL, and disturbs its connections
faults     the kinds of faults; plan   which fault strikes when, from a seed
load       the history as a whole, read after the run
check      the invariants
run        a whole run
"""
