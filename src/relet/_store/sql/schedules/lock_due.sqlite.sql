-- Schedules that are due; and those whose next tick was decided at a time that now lies in the future, because the
-- clock was set back.
select name, definition, next_at, {now}, moved_at > {now} + 1 from {schema}.schedules
where not paused and (next_at <= {now} or moved_at > {now} + 1) and task in (select value from json_each(:tasks))
  and definition not in (select value from json_each(:without))
order by next_at, name
limit :limit;
