"""Runs and solutions made visible: plots, frames without a screen, a viewer in the browser."""
