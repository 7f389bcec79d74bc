"""The protocol that every engine follows, and the choice between the compiled core and the reference."""
