-- Damage in the file; 'ok' if there is none.
pragma quick_check(5);
