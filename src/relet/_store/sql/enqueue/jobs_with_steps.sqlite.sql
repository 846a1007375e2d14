-- Those of the jobs that have stored steps.
select distinct job from {schema}.steps where job in (select value from json_each(:ids));
