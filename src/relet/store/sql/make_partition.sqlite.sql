-- make_partition: there are none here.
select :moment;
