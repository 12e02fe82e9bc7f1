// What the processor has, and the system lets us use. Compilers have __builtin_cpu_supports for it, but that of Zig says no
// to all.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace pb {

struct CpuFeatures {
    bool avx2 = false, fma = false, bmi2 = false, avx512f = false, avx512dq = false, avx512vl = false;
};

inline CpuFeatures find_cpu_features() {
    CpuFeatures found;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return found;
    const bool fma = c & bit_FMA;
    unsigned saved, rest;  // registers that the system saves when it changes from one process to another
    __asm__("xgetbv" : "=a"(saved), "=d"(rest) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
    const bool ymm = (saved & 0x06) == 0x06, zmm = (saved & 0xe6) == 0xe6;
    found.fma = ymm && fma;
    found.avx2 = ymm && (b & bit_AVX2);
    found.bmi2 = b & bit_BMI2;
    found.avx512f = zmm && (b & bit_AVX512F);
    found.avx512dq = zmm && (b & bit_AVX512DQ);
    found.avx512vl = zmm && (b & bit_AVX512VL);
    return found;
}

// Not inside a function, where C++ would guard it: exported programs with Fourier transforms do without its library.
inline const CpuFeatures cpu_features = find_cpu_features();

}  // namespace pb
#endif
