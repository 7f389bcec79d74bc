"""The formats of model files, one module each: a file is read into a `ModelSpec` and written from one."""
