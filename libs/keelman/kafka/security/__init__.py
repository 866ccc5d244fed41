"""How a client proves who it is, and whom it trusts."""
