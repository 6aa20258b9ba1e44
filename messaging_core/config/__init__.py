"""From the text of a configuration file to frozen settings, purely: text, format and environment are arguments."""
