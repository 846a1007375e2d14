-- Nothing to set: the transaction has waited for the write lock already.
select :seconds;
