-- Mark chains as watched, so that their end is announced.
update {schema}.jobs set watched = 1
where watched = 0 and (id in (select value from json_each(:chains))
                       or position > 0 and chain in (select value from json_each(:chains)));

select chain from {schema}.jobs where false;
