-- set_rate: how many jobs of a queue, or of a key in it, may start within a time; null: as many as will.
with lifted as (
    delete from {schema}.rates where queue = :queue::text and key = :key::text and :rate::integer is null
)
insert into {schema}.rates (queue, key, rate, per)
select :queue::text, :key::text, :rate::integer, :per::float8 where :rate::integer is not null
on conflict (queue, key) do update set rate = excluded.rate, per = excluded.per
