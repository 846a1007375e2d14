-- Store the answer, in the transaction that made the change.
update {schema}.operations set outcome = :outcome where id = :id;
