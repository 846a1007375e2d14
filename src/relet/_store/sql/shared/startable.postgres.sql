(start_by is null or version > 0 or start_by > {now}) and token is distinct from :token::text::uuid
