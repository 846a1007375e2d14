-- prune_details: what belonged to pruned jobs.
delete from attempts where job in (select value from json_each(:ids));

delete from edges where job in (select value from json_each(:ids));
