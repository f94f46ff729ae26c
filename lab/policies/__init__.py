"""Other schedulers on the interface of `lab.core.Scheduler`."""
