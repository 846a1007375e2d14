-- What the file holds: names and definitions.
select type, name, sql, tbl_name from sqlite_master;
