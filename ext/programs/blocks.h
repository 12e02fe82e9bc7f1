// Elementwise programs for operands of any size: a kernel for blocks of a fixed length, run on block after block.
//
// The kernel takes, in the order of the program's pointers, one block of each operand, or all of an operand whose step
// is 0 (a scalar); that of a function (functions.h) takes no scalars. The last block may be short: it goes through scratch
// memory, so that the kernel always sees whole ones. Every element is computed by the same instructions wherever it lies,
// so results depend on neither size nor threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pb {

struct Blocks {
    int64_t length = 0;           // elements of a block
    int64_t total = 0;            // elements of an operand
    int64_t grain = 1;            // blocks worth another thread
    size_t arena_bytes = 0;       // scratch that the kernel needs
    std::vector<int64_t> steps;   // bytes of an element by pointer: inputs, constants, outputs
    size_t inputs = 0;            // how many of them are read
    bool counted = false;         // the kernel is one of functions.h

    static constexpr size_t kMaxArena = 1 << 15;
};

// Runs `kernel` on all blocks, on the threads of the pool. Returns 0, or a nonzero code of the kernel's, or 2 when
// interrupted. Needs no GIL.
int run_blocks(const Blocks& blocks, int (*kernel)(void**, void**, void*), void* const* pointers);

}  // namespace pb
