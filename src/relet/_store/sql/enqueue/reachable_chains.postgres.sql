-- Follow dependencies from these chains to the chains that their live jobs wait for, and so on. Returns those of the
-- sought chains that are reached. (Written so that the planner cannot choose another join: one index lookup for each.)
with recursive reached(chain) as (
    select json_array_elements_text(:chains::text::json)::uuid
    union
    select d.depends_on
    from reached r cross join lateral (
        select d.depends_on
        from (
            select j.id from {schema}.jobs j where j.id = r.chain
            union all
            select j.id from {schema}.jobs j where j.chain = r.chain and j."position" > 0
            offset 0
        ) j
        cross join lateral (
            select d.depends_on from {schema}.dependencies d where d.job = j.id and coalesce(d.state, '') = '' offset 0
        ) d
        offset 0
    ) d
)
select chain::text from reached
where chain = any(array(select json_array_elements_text(:sought::text::json)::uuid))
