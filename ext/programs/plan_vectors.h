// Vectors of numbers in the loops of plans, at any places in memory.
#pragma once
#include <cstring>

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed to what is inlined
#define PB_INLINE __attribute__((always_inline)) inline

namespace pb {

// `count` numbers side by side. GCC makes them of registers that there are.
template <typename S, int count>
using Vector [[gnu::vector_size(count * sizeof(S))]] = S;

template <typename V>
PB_INLINE V load(const char* from) {
    V v;
    memcpy(static_cast<void*>(&v), from, sizeof v);
    return v;
}

template <typename V>
PB_INLINE void store(char* to, const V& v) {
    memcpy(to, static_cast<const void*>(&v), sizeof v);
}

}  // namespace pb
