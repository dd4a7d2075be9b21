"""The page of the service: its parts, and the code that joins them into one HTML document."""
