-- Those of the jobs named that have done steps.
select distinct job from {schema}.steps where job in (select value from json_each(:ids));
