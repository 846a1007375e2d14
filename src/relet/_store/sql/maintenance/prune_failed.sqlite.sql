-- Delete failed jobs, and nudge the promoter about the targets that they held and the chains that were watched. A key
-- that one still has is pruned later.
insert into {schema}.nudges (kind, key)
select 'target', target from {schema}.jobs where id in (select value from json_each(:ids)) and holds
union all
select 'chain', chain from {schema}.jobs where id in (select value from json_each(:ids)) and watched;

delete from {schema}.jobs where id in (select value from json_each(:ids));
