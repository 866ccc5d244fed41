"""A client of Couchbase's change stream (DCP): a bucket's content and every change of it, vbucket by vbucket."""
