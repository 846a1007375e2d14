-- The state of the last job of each chain. No row: the chain is deleted.
select chain, state from {schema}.jobs where id in (select value from json_each(:chains))
union all
select chain, state from {schema}.jobs where position > 0 and chain in (select value from json_each(:chains))
union all
select chain, state from {schema}.finished where id in (select value from json_each(:chains)) and not continued
union all
select chain, state from {schema}.finished
where position > 0 and chain in (select value from json_each(:chains)) and not continued;
