-- One promoter at a time: the transaction has the write lock.
select 1;
