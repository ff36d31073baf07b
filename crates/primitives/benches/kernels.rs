//! Time per block of the kernels, at every level of the processor.

fn main() {}
