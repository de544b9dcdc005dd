"""Alarms for water meters that leak: one day of hourly readings in, one probability out."""
