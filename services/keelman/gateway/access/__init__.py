"""Who calls the gateway, by token, certificate or signature, and what each caller may do."""
