-- due_schedules: those whose time has come.
select name, definition, next_at, {now} from {schema}.schedules
where not paused and next_at <= {now} and task in (select value from json_each(:tasks))
  and definition not in (select value from json_each(:without))
order by next_at, name
limit :most;
