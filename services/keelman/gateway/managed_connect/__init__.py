"""The managed Connect API, as the AWS SDKs speak it, on the state service's resources; nothing is kept here."""
