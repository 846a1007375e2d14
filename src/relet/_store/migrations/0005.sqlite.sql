-- How long leases could be renewed, in periods: faults that follow each other closely must not stop reaping for good.
-- oldest: 1
-- period_from: when the current period began; uptime: in how many seconds of it leases could be renewed. A period that
-- has enough of them ends. reap_before: when the last period began that has ended. Leases that expired before that may
-- be reaped within a grace period, too: their workers had enough time to renew them.

alter table {schema}.pulse add column period_from real not null default 0;
alter table {schema}.pulse add column uptime real not null default 0;
alter table {schema}.pulse add column reap_before real not null default 0;
