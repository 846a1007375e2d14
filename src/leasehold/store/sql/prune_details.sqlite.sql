-- prune_details: what belonged to pruned jobs.
delete from {schema}.attempts where job in (select value from json_each(:ids));

delete from {schema}.steps where job in (select value from json_each(:ids));

delete from {schema}.signals where job in (select value from json_each(:ids));

delete from {schema}.edges where job in (select value from json_each(:ids));
