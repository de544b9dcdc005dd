"""Where a reader meets the examiner: commands, cells, a page, a test."""
