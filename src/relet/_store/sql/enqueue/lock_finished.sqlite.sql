-- Nothing to lock: there is one writer, so nothing is pruned before this transaction ends.
select value from json_each(:ids) where false;
