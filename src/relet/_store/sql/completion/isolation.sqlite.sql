-- There is one writer: no row changes under a transaction that has the write lock.
select 'read committed';
