"""What a torch version does, as data: `rules/torch-X.Y.json`, written by `generate`, read by `load`."""
