-- drop_keys: give back the keys that were taken for jobs which will not be.
delete from {schema}.keys where job in (select value from json_each(:ids));
