"""The dashboard: pages for people, at `/`, on top of the Desk. Reading and reporting work without JavaScript."""
