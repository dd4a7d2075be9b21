"""The process that computes, as the service sees it."""
