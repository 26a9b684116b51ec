"""What can be said of a build before it runs: the worst-case stack (`stack`), and jobs in time (`tasks`, plain data)."""
