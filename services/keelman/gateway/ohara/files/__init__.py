"""`/v0/files`, on plugins: uploaded by form, downloaded, and the classes in them."""
