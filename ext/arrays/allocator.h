// The caching allocator of array data and of the arenas of programs.
//
// Every block is aligned to 64 bytes (to 2 MiB if it is that large, and then asked to lie in huge pages). Sizes are
// rounded up to size classes, four per power of two, so freed blocks fit the next request of about the same size: fresh
// pages cost more than most arithmetic. Freed blocks are kept up to a limit (an eighth of the machine's memory unless
// set), above which the largest are given back to the system.
//
// All functions are thread-safe, need no GIL, and never call into Python. They block only on a short internal lock.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pb {

constexpr size_t kAlignment = 64;

// A block of at least `bytes` bytes with undefined contents, or null if there is no memory. Size 0 gives the address of
// a shared dummy block, which must not be written to.
void* allocate(size_t bytes) noexcept;

// Gives a block back. `bytes` must be the size that it was allocated with. Null is allowed.
void deallocate(void* block, size_t bytes) noexcept;

// Whether `pointer` is aligned as array data must be.
inline bool is_aligned(const void* pointer, size_t alignment = kAlignment) {
    return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

struct MemoryStats {
    size_t bytes_in_use, peak_bytes_in_use, bytes_cached, cache_limit, num_allocs, num_reused;
};
MemoryStats memory_stats() noexcept;

// Gives cached blocks back to the system until at most `keep` bytes of them are left.
void trim_memory(size_t keep) noexcept;
// Sets the bound on cached bytes, and trims to it.
void set_cache_limit(size_t bytes) noexcept;

}  // namespace pb
