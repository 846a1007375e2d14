"""The real flows and the real worker on a seeded scheduler, in virtual time.

kernel     threads that switch only where the scheduler decides, and the virtual clock
system     the `System` of a simulated process
database   a store over SQLite in memory, with faults between a process and the database
shop       the tasks
run        one seed: a plan of faults, the run, and the check
"""
