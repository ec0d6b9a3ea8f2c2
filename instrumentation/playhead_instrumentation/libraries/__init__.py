"""What patches one library or one part of the standard library: a module or folder named after it."""
