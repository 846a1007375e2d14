-- The latest failed jobs, by task and the first line of the error.
select task, line, count(*), min(stopped_at), max(stopped_at), max(id)
from (
    select task,
           substr(substr(coalesce(error, ''), 1, instr(coalesce(error, '') || char(10), char(10)) - 1), 1, 300) as line,
           stopped_at, id
    from {schema}.jobs where state = 'failed'
    order by stopped_at desc
    limit :limit
)
group by task, line;
