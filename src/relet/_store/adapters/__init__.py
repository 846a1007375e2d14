"""Flows on a connection of the caller: one adapter for each driver."""
