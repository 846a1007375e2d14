-- Whether maintenance has work: leases, queued jobs, expired leases, nudges, and when the next jobs and schedules are
-- due.
select exists (select 1 from {schema}.jobs where expires_at is not null),
       exists (select 1 from {schema}.jobs where state = 'queued' and :queued),
       exists (select 1 from {schema}.jobs where expires_at <= {now}),
       exists (select 1 from {schema}.nudges),
       (select min(due) - {now} from (
            select * from (select run_at as due from {schema}.jobs where wait = 'time' order by run_at, seq limit 1)
            union all
            select * from (select start_by from {schema}.jobs where start_by is not null and version = 0
                           order by start_by limit 1))),
       (select min(case when moved_at > {now} + 1 then {now} else next_at end) - {now} from {schema}.schedules
        where not paused and task in (select value from json_each(:tasks))
          and definition not in (select value from json_each(:without)));
