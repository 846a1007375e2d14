-- chain_ids: every job of the chains named.
select id from {schema}.all_jobs
where id in (select value from json_each(:chains))
   or position > 0 and chain in (select value from json_each(:chains))
order by id;
