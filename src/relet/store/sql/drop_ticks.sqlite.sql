-- drop_ticks: of a schedule that is gone.
delete from {schema}.ticks where schedule = :name;
