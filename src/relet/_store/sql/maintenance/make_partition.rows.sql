-- There are no partitions.
select 0 where :moment::float8 is not null
