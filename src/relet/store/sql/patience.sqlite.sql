-- patience: the transaction was waited for already.
select :seconds;
