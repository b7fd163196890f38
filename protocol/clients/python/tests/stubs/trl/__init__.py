"""The parts of TRL that the adapter meets, with the fields and rules of its sources."""
