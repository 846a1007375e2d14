-- There are none here.
select 0;
