-- From the chains named to what their live jobs wait for, from there to what those wait for, and so on: which of
-- the chains sought that leads to.
with recursive reached(chain) as (
    select value from json_each(:chains)
    union
    select e.blocker
    from reached r cross join {schema}.jobs j cross join {schema}.edges e
    where (j.id = r.chain or j.position > 0 and j.chain = r.chain) and e.job = j.id and +e.state is null
)
select chain from reached where chain in (select value from json_each(:sought));
