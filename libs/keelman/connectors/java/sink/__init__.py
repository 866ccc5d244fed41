"""Java sink tasks: the thread that one lives in, the records that it is given, and what it may ask of its worker."""
