-- How much WAL a standby has replayed, in bytes; which cluster it follows; and how many seconds ago, by its clock, the
-- last transaction was committed that it has replayed. A server that is no standby has replayed nothing.
select pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end, '0/0')::bigint,
       (pg_control_system()).system_identifier,
       extract(epoch from {now} - pg_last_xact_replay_timestamp())::float8
