"""Learning to rank on made-up queries."""
