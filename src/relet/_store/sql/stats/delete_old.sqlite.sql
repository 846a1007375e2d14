-- Delete counts that were added up in longer steps, or that are older than any step, up to one of them.
delete from {schema}.stats where step = :step and (at, queue, name, bucket) <= (:at, :queue, :name, :bucket);
