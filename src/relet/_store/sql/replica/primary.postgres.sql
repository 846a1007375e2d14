-- How much WAL the primary has flushed, which a standby can have, and how much it has written in all, in bytes; and
-- which cluster it is. A commit that is not synchronous may not be flushed yet.
select pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
       (pg_control_system()).system_identifier
