"""The process that computes: its model, its main function, and the service's side of it."""
