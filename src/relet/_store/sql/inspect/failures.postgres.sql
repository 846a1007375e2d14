-- The latest failed jobs, by task and the first line of the error.
select task, line, count(*), extract(epoch from min(stopped_at))::float8, extract(epoch from max(stopped_at))::float8,
       max(id::text)
from (
    select task, left(split_part(coalesce(error, ''), chr(10), 1), 300) as line, stopped_at, id
    from {schema}.jobs where state = 'failed'
    order by stopped_at desc
    limit :limit::integer
) latest
group by task, line
