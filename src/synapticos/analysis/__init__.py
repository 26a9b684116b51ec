"""What can be said of a build before it runs: the worst-case stack (`stack`), the cycles of its code (`cycles`), the
longest way through it (`paths`), and of jobs in time (`tasks`, plain data) their worst responses (`response`) and what
would make a late one keep its deadline (`advice`)."""
