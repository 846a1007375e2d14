-- blockers: what a job waits or waited for.
select blocker, state, result from edges where job = :id order by position;
