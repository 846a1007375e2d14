"""What joins Relet to other projects. Each module needs what it is named after."""
