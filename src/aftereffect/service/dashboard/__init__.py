"""The dashboard: pages for people, at `/`, on top of the Store. Reading and reporting work without JavaScript."""
