"""One module a step, named by its version. A step that has been released is never changed."""
