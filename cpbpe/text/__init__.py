"""Characters and rules, without a model: UTF-8, charsmaps, scripts, and the finder of keys in text."""
