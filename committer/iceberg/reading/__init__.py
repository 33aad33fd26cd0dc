"""What engines make of scans: splits for their tasks, and streams of what is appended."""
