"""What the state service itself asks the brokers of clusters, and tells them."""
