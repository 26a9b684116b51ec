"""Signal processing: the operations in software, and `contract`, through which a board's accelerator may do them."""
