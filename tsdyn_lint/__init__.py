"""Flags the lines that break a PyTorch capture (script, trace, compile, export) before anything runs."""

__version__ = "0.1.0"
