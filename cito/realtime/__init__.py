"""The real-time side: the only clock, robots, safety and logs around a controller that has none."""
