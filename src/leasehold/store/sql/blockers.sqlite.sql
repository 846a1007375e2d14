-- blockers: what a job waits or waited for.
select blocker, state, result from {schema}.edges where job = :id order by position;
