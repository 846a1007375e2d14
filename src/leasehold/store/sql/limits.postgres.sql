-- limits: lock the rows of the limits that apply, in order, before anything is counted.
select queue, max_running, fair, rated, last_key from {schema}.queues
where limited and (queue = '*' or queue = any(array(select json_array_elements_text(:queues::text::json))))
order by queue
for update
