-- The transaction has locked the file.
select 1;
