-- Queued -> running, for one job that the caller names. Its queue may be paused: that stops workers, not an operator.
update {schema}.jobs
set {leased}
where id = :id and state = 'queued'
returning {claimed};
