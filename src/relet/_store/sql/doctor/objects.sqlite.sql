-- The objects in the file: names and definitions.
select type, name, sql, tbl_name from sqlite_master;
