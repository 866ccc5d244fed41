"""Who may do what, by which token a host joins, and the secrets that nobody is shown."""
