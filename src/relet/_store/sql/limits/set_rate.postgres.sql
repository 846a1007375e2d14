-- Set how many jobs of a queue, or of a key in it, may start within a period.
insert into {schema}.rates (queue, key, rate, per) values (:queue::text, :key::text, :rate::integer, :per::float8)
on conflict (queue, key) do update set rate = excluded.rate, per = excluded.per
