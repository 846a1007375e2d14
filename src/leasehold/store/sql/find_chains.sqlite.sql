-- find_chains: the chain of each job named.
select id, chain from {schema}.all_jobs where id in (select value from json_each(:ids));
