(start_by is null or version > 0 or start_by > {now})
