-- There are none here.
select :moment;
