-- Delete old ticks whose jobs, and the jobs that continued their chains, are over.
delete from {schema}.ticks where rowid in (
    select t.rowid from {schema}.ticks t
    where t.tick < {now} - :seconds
      and not exists (select 1 from {schema}.jobs j where j.id = t.job)
      and not exists (select 1 from {schema}.jobs j where j.chain = t.job and j.position > 0)
    limit :limit)
returning schedule;
