"""Requests over HTTP to GCS and Azure. No conditional write is repeated here by itself."""
