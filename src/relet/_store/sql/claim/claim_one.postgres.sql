-- Queued -> running, for one job that the caller names and an earlier statement has locked. Its queue may be paused:
-- that stops workers, not an operator.
update {schema}.jobs j
set {leased}
where j.id = :id::text::uuid and j.state = 'queued'
returning {claimed}
