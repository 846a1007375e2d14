-- One at a time; the transaction already sees to that.
select 1;
