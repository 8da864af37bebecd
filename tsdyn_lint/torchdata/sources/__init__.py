"""Readers of one torch, installed or unpacked from its wheel: each yields one section of its data file."""
