"""The decision service: ask for today's arm, report today's total, lose nothing."""
