-- Nothing to do: SQLite has no partitions.
select :moment;
