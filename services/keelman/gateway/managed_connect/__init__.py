"""The managed Connect API, as the AWS SDKs call it, on the state service's resources; it stores nothing itself."""
