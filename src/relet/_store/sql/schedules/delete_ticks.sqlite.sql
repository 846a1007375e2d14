-- Of a schedule that is gone.
delete from {schema}.ticks where schedule = :name;
