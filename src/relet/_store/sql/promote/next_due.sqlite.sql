-- Seconds until the next pending job is due, or the next job has to be cancelled because it has not started.
select min(due) - {now} from (
    select min(run_at) as due from {schema}.jobs where wait = 'time'
    union all
    select min(start_by) from {schema}.jobs where start_by is not null and version = 0);
