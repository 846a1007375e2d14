-- Delete starts that lie after this moment, once they are counted at it.
delete from {schema}.starts where queue in (select value from json_each(:queues)) and at > :moment;
