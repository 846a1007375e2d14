-- Nothing to do: SQLite has no partitions.
select 0;
