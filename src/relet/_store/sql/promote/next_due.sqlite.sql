-- Seconds until the next pending job is due.
select min(run_at) - {now} from {schema}.jobs where wait = 'time';
