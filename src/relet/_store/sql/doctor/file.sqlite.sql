-- The journal mode, the page size, how many pages there are, and how many of them are free.
pragma journal_mode;
pragma page_size;
pragma page_count;
pragma freelist_count;
