"""Operations: one plain function is one transaction, and nothing else writes."""
