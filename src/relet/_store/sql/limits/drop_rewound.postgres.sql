-- Delete starts that lie after this moment, once they are counted at it.
delete from {schema}.starts
where queue = any(array(select json_array_elements_text(:queues::text::json))) and at > to_timestamp(:moment::float8)
