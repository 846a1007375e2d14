-- Delete old audit entries, the oldest first.
delete from {schema}.audit where seq in (
    select seq from (select seq, at from {schema}.audit order by seq limit :limit) where at < {now} - :seconds)
returning seq;
