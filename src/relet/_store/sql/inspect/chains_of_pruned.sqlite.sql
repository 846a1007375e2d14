-- Chains that go by these ids, though their first jobs are gone. (Id and chain, as find_chains.)
select chain, chain from {schema}.jobs where chain in (select value from json_each(:ids)) and position > 0
union
select chain, chain from {schema}.finished where chain in (select value from json_each(:ids)) and position > 0;
