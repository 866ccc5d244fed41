"""Copy runs and the leases of the workers that ordered them."""
