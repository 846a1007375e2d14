-- prune_finished: a batch of what has been over for long enough.
delete from finished where id in (select id from finished where finished_at < {now} - :seconds order by finished_at limit :most)
returning id;
