"""A client of Couchbase's change stream (DCP): what a bucket holds and every change of it, vbucket by vbucket."""
