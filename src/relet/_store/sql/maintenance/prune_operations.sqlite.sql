-- Delete answers that no retry will ask for any more.
delete from {schema}.operations where id in (
    select id from {schema}.operations where at < {now} - :seconds order by at limit :limit)
returning id;
