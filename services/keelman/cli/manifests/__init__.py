"""What resources are to be, as `keelman apply -f` reads it and `keelman export` writes it: read, judged and done."""
