-- What is broken in the file; 'ok' if nothing is.
pragma quick_check(5);
