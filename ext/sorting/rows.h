// How sorts of rows are shared by threads.
#pragma once
#include "threads/chunks.h"

namespace pb {

constexpr int64_t kRowGrain = 1 << 12;  // elements of rows that one thread takes at a time
constexpr int64_t kChunk = 1 << 14;     // elements of one row for which a thread is woken

// row(r, first, chunks) for all rows: several at a time on one thread each, or one after the other on all threads.
// `first` is the first row that the calling thread took: it may use the scratch memory of that one for all its rows.
template <class Function>
void for_rows(int64_t rows, int64_t n, const Function& row) {
    if (n == 0) return;
    if (rows >= num_threads() || n <= kChunk)
        parallel(rows, std::max<int64_t>(1, kRowGrain / n), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) row(r, begin, Chunks{n, 1});
        });
    else
        for (int64_t r = 0; r < rows; ++r) row(r, r, Chunks::of(n, kChunk));
}

}  // namespace pb
