"""Test hosts: network namespaces joined by a network of a set bandwidth and latency."""
