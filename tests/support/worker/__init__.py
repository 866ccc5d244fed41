"""The common base of the workers' tests: worker processes alone and in groups, and requests to them."""
