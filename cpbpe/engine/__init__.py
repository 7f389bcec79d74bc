"""One protocol for what does the work, and the choice between the compiled core and the reference."""
