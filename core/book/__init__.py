"""One table with its plugins and catalogs: every column with its one formula."""
