"""One module per step, named by its version. A released step is never changed."""
