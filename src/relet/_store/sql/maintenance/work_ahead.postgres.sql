-- Whether maintenance has work: leases, queued jobs, expired leases, nudges, and when the next jobs and schedules are
-- due. Ordered, so that the planner takes the index and not the table.
select (select true from {schema}.jobs where expires_at is not null order by expires_at limit 1) is true,
       (select true from {schema}.jobs where state = 'queued' and :queued::boolean
        order by queue, suspect, rank, seq limit 1) is true,
       (select true from {schema}.jobs where expires_at <= {now} order by expires_at limit 1) is true,
       exists (select from {schema}.nudges),
       least(
           (select extract(epoch from run_at - {now})::float8 from {schema}.jobs where wait = 'time'
            order by run_at, seq limit 1),
           (select extract(epoch from start_by - {now})::float8 from {schema}.jobs
            where start_by is not null and version = 0 order by start_by limit 1)),
       (select extract(epoch from
                   min(case when moved_at > m.now + interval '1 second' then m.now else next_at end) - {now})::float8
        from {schema}.schedules cross join (select {now} as now) m
        where not paused and task = any(array(select json_array_elements_text(:tasks::text::json)))
          and definition::text <> all(array(select json_array_elements_text(:without::text::json))))
