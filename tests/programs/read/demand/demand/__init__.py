"""Forecast of the daily demand of products."""
