"""The storage on S3, and on servers of its protocol."""
