-- A copy of a file cannot be told from a file that was moved.
select '', '';
