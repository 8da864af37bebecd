"""Runs the flagged code on the real torch, always in another process, and says which findings hold."""
