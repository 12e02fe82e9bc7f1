// Stable sorts of rows, called by compiled programs. Thread-safe, without the GIL; work of size uses the thread pool.
//
// `kind` is a number of sort_keys.h. Arrays are [rows, n], row-major. Sorted elements keep their bits: zeros of both
// signs count as equal, as NaN do, which come last, and equal ones stay in the order they had.
//
// Sorts are NumPy's vector sorts, by pointer, in runs that are merged on the threads; sorts with payloads are radix
// sorts; medians, quantiles of known fractions, `top_k` and `partition` do not sort (selection.h).
//
// Measured, in processor time for 1e6 float32 on AVX2: NumPy's sort 6.9 ms, ours 7.7 on one thread and 9.9 on two
// together; NumPy's argsort 38 ms, our stable one 18; a radix sort of keys alone took 15, and dealing elements into 16
// parts before sorting these 17. Rows of up to 16 elements are sorted by counting what comes before each, without
// branches: 10,000 rows of 8 float32 took 824 us on one core, now 240 (NumPy: 327).
#pragma once
#include <cstdint>

namespace pb {

// Sorts by kind, which are not stable; for kinds of 4 and 8 bytes: NumPy's (AVX-512 or AVX2 where there is such), or
// compress_sort where that is quicker. They are found by one call when NumPy has been imported. scratch: n elements, or
// null.
using QuickSort = int (*)(void* start, intptr_t n, void* scratch);
extern QuickSort quick_sorts[];
bool find_quick_sorts();

}  // namespace pb

extern "C" {
// sorted = each row of x in order. scratch: rows * n * 8 bytes for kinds of 2 bytes, else as x.
void pb_sort(int64_t kind, int64_t rows, int64_t n, const void* x, void* sorted, void* scratch);
// Keys in order, and payloads of `size` (4 or 8) bytes in the order of their keys. scratch: rows * n * 16 bytes for
// kinds and payloads of up to 4 bytes, else rows * n * 32. sorted_keys is left alone unless `want_keys`.
void pb_sort_pairs(int64_t kind, int64_t size, int64_t rows, int64_t n, int64_t want_keys, const void* keys,
                   const void* payloads, void* sorted_keys, void* sorted_payloads, void* scratch);
}
