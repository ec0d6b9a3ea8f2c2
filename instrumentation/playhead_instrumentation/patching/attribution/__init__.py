"""Attribution of running code: to the program, to a library, or to the machinery below them."""
