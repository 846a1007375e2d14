-- Those of the chains that a job waits for.
select value from json_each(:chains)
where exists (select 1 from {schema}.dependencies d where d.depends_on = value and d.state is null);
