"""What everything else stands on: errors, checks, random streams, records, saved states, the kernel form."""
