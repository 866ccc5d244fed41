"""Topics as resources: their checks, the brokers' reports of them, and the changes to brokers that apply them."""
