"""Integrations with other projects. Each module needs the project that it is named after."""
