-- Nothing to do: sleeping workers watch the file itself.
select 1 where false;
