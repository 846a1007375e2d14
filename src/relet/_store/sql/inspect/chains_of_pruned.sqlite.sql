-- Chains with these ids whose first jobs were pruned. (Id and chain, like `chains_of`.)
select chain, chain from {schema}.jobs where chain in (select value from json_each(:ids)) and position > 0
union
select chain, chain from {schema}.finished where chain in (select value from json_each(:ids)) and position > 0;
