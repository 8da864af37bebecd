"""Program -> Events: an abstract walk of what the captures see, from each entry point through the calls it makes."""
