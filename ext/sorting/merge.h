// Merging of sorted runs, on the threads of the pool.
#pragma once
#include <utility>
#include <vector>

#include "threads/chunks.h"

namespace pb {

template <class T>
struct Span {
    const T* begin;
    const T* end;
    int64_t size() const { return end - begin; }
};

// out = a and b in order; no NaN. Written from both ends at once, each a chain of choices without a branch; a batch is
// as long as neither run can end in it.
template <class T>
void merge_spans(Span<T> a, Span<T> b, T* out) {
    T* back = out + a.size() + b.size();
    for (int64_t batch; (batch = std::min(a.size(), b.size()) / 2) > 0;)
        for (int64_t k = 0; k < batch; ++k) {
            T low_a = *a.begin, low_b = *b.begin, high_a = a.end[-1], high_b = b.end[-1];
            bool from_b = low_b < low_a, above_b = high_b < high_a;
            *out++ = from_b ? low_b : low_a;
            b.begin += from_b;
            a.begin += !from_b;
            *--back = above_b ? high_a : high_b;
            a.end -= above_b;
            b.end -= !above_b;
        }
    while (a.size() && b.size()) *out++ = *b.begin < *a.begin ? *b.begin++ : *a.begin++;
    out = std::copy(a.begin, a.end, out);
    std::copy(b.begin, b.end, out);
}

// How many of the first `count` elements of the merged runs come from a.
template <class T>
int64_t from_first(Span<T> a, Span<T> b, int64_t count) {
    int64_t low = std::max<int64_t>(0, count - b.size()), high = std::min(count, a.size());
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (b.begin[count - middle - 1] < a.begin[middle]) high = middle;
        else low = middle + 1;
    }
    return low;
}

// The runs merged in pairs until one is left; `x` holds them one after the other, `other` has as much memory. Gives
// which of the two holds the result. As many levels as the number of runs, a power of two, says.
template <class T>
T* merge_all(T* x, T* other, std::vector<int64_t> sizes, int64_t tasks) {
    while (sizes.size() > 1) {
        int64_t pairs = int64_t(sizes.size()) / 2, pieces = std::max<int64_t>(1, tasks / pairs);
        std::vector<int64_t> starts(sizes.size() + 1, 0);
        for (size_t k = 0; k < sizes.size(); ++k) starts[k + 1] = starts[k] + sizes[k];
        parallel(pairs * pieces, 1, [&](int64_t first, int64_t last) {
            for (int64_t task = first; task < last; ++task) {
                size_t pair = size_t(task / pieces);
                Span<T> a{x + starts[2 * pair], x + starts[2 * pair + 1]}, b{a.end, x + starts[2 * pair + 2]};
                Chunks part{a.size() + b.size(), pieces};
                int64_t begin = part.begin(task % pieces), end = part.begin(task % pieces + 1);
                int64_t i = from_first(a, b, begin), j = from_first(a, b, end);
                merge_spans<T>({a.begin + i, a.begin + j}, {b.begin + (begin - i), b.begin + (end - j)},
                               other + starts[2 * pair] + begin);
            }
        });
        for (size_t k = 0; k < sizes.size() / 2; ++k) sizes[k] = sizes[2 * k] + sizes[2 * k + 1];
        sizes.resize(sizes.size() / 2);
        std::swap(x, other);
    }
    return x;
}

}  // namespace pb
