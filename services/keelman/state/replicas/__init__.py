"""Several state services of one database: the choice of their leader, and the messages between them."""
