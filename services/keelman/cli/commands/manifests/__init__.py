"""`keelman apply`, `cancel` and `export`: target states of resources, from files or as one goal."""
