// What can be said of the order of rows without sorting them, in time linear in their length. Called by compiled
// programs as sorting.h says: same kinds, same order, same threads.
#pragma once
#include <cstdint>

extern "C" {
// selected[r, j] = the element that sorting would put at places[j], which rise. x is [rows, n], selected [rows, count].
// scratch: rows * n * 16 bytes for kinds of 8 bytes, else rows * n * 8.
void pb_select(int64_t kind, int64_t rows, int64_t n, int64_t count, const int64_t* places, const void* x,
               void* selected, void* scratch);
// Each row with the element `place` where sorting would put it, smaller ones before and larger ones behind it, in an
// order that depends on the row alone. With `numbers`, the result is the elements' numbers (int32). scratch: half as
// much again.
void pb_partition(int64_t kind, int64_t numbers, int64_t rows, int64_t n, int64_t place, const void* x, void* result,
                  void* scratch);
// The k largest of each row, from the largest on, and their numbers (int32); the first of equal ones first. Floats are
// in their total order, -NaN first and NaN last, -0 before 0.
void pb_top_k(int64_t kind, int64_t rows, int64_t n, int64_t k, const void* x, void* values, void* numbers);
}
