"""Relet and its peers under the same faults: `./dev bench peer-faults`.

adapters         one program for each peer: its settings, and handlers that record starts and ends outside the database
peers            what the harness knows of a peer: its environment, its settings in words, and SQL that reads its jobs
testbed          a PostgreSQL server, a proxy for each worker, and worker processes that are started again when they end
history          what the handlers recorded
scenarios        the faults, and what is counted
report           the tables
"""
