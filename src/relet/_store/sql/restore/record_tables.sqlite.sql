-- Not recorded: see `tables`.
select 1 where false and :tables = '';
