"""Resources that are a file of the user's: secrets, worker configurations, and plugins fetched and downloaded."""
