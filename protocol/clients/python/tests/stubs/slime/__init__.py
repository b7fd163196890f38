"""The parts of slime that the adapter meets, with the fields and rules of its sources."""
