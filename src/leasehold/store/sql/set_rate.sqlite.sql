-- set_rate: how many jobs of a queue, or of a key in it, may start within a time; null: as many as will.
delete from {schema}.rates where queue = :queue and key = :key;

insert into {schema}.rates (queue, key, rate, per) select :queue, :key, :rate, :per where :rate is not null;
