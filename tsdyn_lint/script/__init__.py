"""What `torch.jit.script` would say: TorchScript's types, its view of an instance, and a check of what it compiles."""
