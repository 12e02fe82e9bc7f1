"""From loop IR to machine code through LLVM, and into the process."""
