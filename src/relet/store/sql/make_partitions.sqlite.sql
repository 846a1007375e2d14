-- make_partitions: there are none here.
select 0;
