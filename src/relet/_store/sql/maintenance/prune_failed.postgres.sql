-- Delete failed jobs, locked by an earlier statement, and nudge the promoter about the targets that they held and the
-- chains that were watched. A key that one still has is pruned later.
with gone as (
    delete from {schema}.jobs where id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
    returning target, holds, watched, chain
)
insert into {schema}.nudges (kind, key)
select 'target', target from gone where holds
union all
select 'chain', chain::text from gone where watched
