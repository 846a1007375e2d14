-- There are no partitions.
select 0 where :days::integer is not null
