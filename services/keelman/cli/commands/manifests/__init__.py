"""`keelman apply`, `cancel` and `export`: what resources are to be, by files or by one goal."""
