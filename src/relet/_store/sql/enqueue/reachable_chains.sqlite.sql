-- Follow dependencies from these chains to the chains that their live jobs wait for, and so on. Returns those of the
-- sought chains that are reached.
with recursive reached(chain) as (
    select value from json_each(:chains)
    union
    select d.depends_on
    from reached r cross join {schema}.jobs j cross join {schema}.dependencies d
    where (j.id = r.chain or j.position > 0 and j.chain = r.chain) and d.job = j.id and +d.state is null
)
select chain from reached where chain in (select value from json_each(:sought));
