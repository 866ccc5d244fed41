"""Java sink tasks: the thread of a task, the records that it gets, and its interface to its worker."""
