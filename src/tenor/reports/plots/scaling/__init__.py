"""Plots of scaling: speed-up and efficiency, stage by stage, and convergence by the number of workers."""
