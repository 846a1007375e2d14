-- next_due: seconds until the next pending job is due.
select min(run_at) - {now} from jobs where wait = 'time';
