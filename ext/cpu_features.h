// What the processor has, and the system lets us use. Compilers have __builtin_cpu_supports for it, but that of Zig says no
// to all.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace pb {

struct CpuFeatures {
    bool avx2 = false, fma = false, bmi2 = false, avx512f = false, avx512dq = false, avx512vl = false;
    int level = 1;  // of x86-64, as the ABI of System V numbers them: 3 and 4, or less than that
};

inline CpuFeatures find_cpu_features() {
    CpuFeatures found;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return found;
    const bool fma = c & bit_FMA, others = (c & bit_AVX) && (c & bit_F16C) && (c & bit_MOVBE);
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
    const bool bmi = b & bit_BMI, bytes = zmm && (b & bit_AVX512BW), conflicts = zmm && (b & bit_AVX512CD);
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & bit_ABM)) return found;
    if (others && bmi && found.bmi2 && found.avx2 && found.fma)
        found.level = bytes && conflicts && found.avx512f && found.avx512dq && found.avx512vl ? 4 : 3;
    return found;
}

// Not inside a function, where C++ would guard it: exported programs with Fourier transforms do without its library.
inline const CpuFeatures cpu_features = find_cpu_features();

}  // namespace pb
#endif
