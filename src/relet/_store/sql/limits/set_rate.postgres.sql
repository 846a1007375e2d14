-- Set how many jobs of a queue, or of a group in it, may start within a period.
insert into {schema}.rates (queue, group_key, rate, per) values (:queue::text, :group::text, :rate::integer,
                                                                 :per::float8)
on conflict (queue, group_key) do update set rate = excluded.rate, per = excluded.per
