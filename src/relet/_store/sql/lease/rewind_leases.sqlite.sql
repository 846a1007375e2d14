-- The clock was set back: leases that were taken in the future start now, and last no longer than they were meant to.
update {schema}.jobs
set expires_at = {now} + (expires_at - coalesce(renewed_at, started_at)), renewed_at = {now}
where expires_at is not null and coalesce(renewed_at, started_at) > {now} + 1;
