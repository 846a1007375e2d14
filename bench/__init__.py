"""Benchmarks: `./dev bench` lists them. They start their own databases and remove them afterwards.

machine, server, places, programs   where a measurement runs: CPU accounting, servers, empty stores, child processes
systems, environments, adapters     what is measured: relet, its peers, bare loops
cells                               how: one function per kind of measurement
plan, runner, results               which measurements, in which order, and what they gave
bars, report, summary, picture      verdicts, tables and the files in docs/benchmarks
commands                            one module per command
peer_faults                         relet and its peers under the same faults, not for speed
failover                            the loss of a PostgreSQL primary under load, not for speed either
"""
