"""Learned policies outside the simulator that they learned in."""
