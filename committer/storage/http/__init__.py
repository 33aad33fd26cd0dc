"""The storage over HTTP that GCS and Azure share. It repeats no conditional write by itself."""
