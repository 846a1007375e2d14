"""The loss of a PostgreSQL primary under load, in each of the ways that the guide on high availability names:
`./dev bench failover`.

shop       the app: handlers that record their starts and ends outside of the database
load       producers and workers, and what became of the jobs
scenarios  servers, and how they fail
row        one scenario in a separate process
command    all of them, and the table
"""
