"""Topics as resources: what is legal of them, what the brokers say of them, and how the brokers are brought to them."""
