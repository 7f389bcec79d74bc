"""Characters and rules, without a model: UTF-8, charsmaps, scripts, finding keys in text."""
