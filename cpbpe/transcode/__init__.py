"""Files of text to files of ids or pieces, and back: streams of any length, in order, on several threads."""
