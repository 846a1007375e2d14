-- How the file is written, the size of a page, how many there are, and how many of them are free.
pragma journal_mode;
pragma page_size;
pragma page_count;
pragma freelist_count;
