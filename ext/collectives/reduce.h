// Element by element combination of buffers, for what devices reduce together.
#pragma once
#include <cstddef>

namespace pb {

// The order of both is that of lax/collectives/native.py.
enum class Combine : int { sum, product, maximum, minimum, bitwise_and, bitwise_or, bitwise_xor, count };
enum class Element : int { i8, i16, i32, i64, u8, u16, u32, u64, bf16, f32, f64, c64, c128, count };

size_t element_bytes(Element type);

// out[i] = combine(a[i], b[i]); out may be a or b. A maximum or minimum of something and nan is nan; -0 < 0 is not told
// apart. Null if there is no such operation: bits of floats, extremes of complex numbers.
using Combiner = void (*)(const void* a, const void* b, void* out, size_t count);
Combiner combiner(Combine how, Element type);

}  // namespace pb
