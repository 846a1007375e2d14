-- patience: the transaction was waited for already.
select 1;
