"""What the state service keeps, as this API asks for it and by the keys that it has."""
