-- There is one writer, so that no row changes under a transaction that has the write lock.
select 'read committed';
