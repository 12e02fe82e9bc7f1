// Stable radix sort of elements with a 32- or 64-bit key, in memory that the caller gives.
//
// One pass per digit of 8 bits, from the lowest: elements are dealt into 256 places, in order. Digits that are the same
// everywhere are left out, and so are low digits that hardly ever decide: what they would have ordered is put right
// afterwards, in runs of equal upper digits. A stable order is unique, so the result does not depend on the threads.
#pragma once
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "chunks.h"
#include "sort_keys.h"

namespace pb {

struct None {};

template <class KeyT, class PayloadT>
struct Element {
    using Key = KeyT;
    using Payload = PayloadT;
    Key key;
    Payload payload;
};

template <class KeyT>
struct Element<KeyT, None> {
    using Key = KeyT;
    using Payload = None;
    Key key;
};

constexpr int kDigits = 256;
constexpr int64_t kInsertion = 24;     // elements up to which insertion is fastest
constexpr int64_t kLongRun = 1 << 10;  // from which a run of equal upper digits is sorted by digits, too

template <int digits>
using Counts = std::array<std::array<uint64_t, kDigits>, digits>;

template <class E>
void insertion_sort(E* x, int64_t n) {
    for (int64_t i = 1; i < n; ++i) {
        E element = x[i];
        int64_t j = i;
        for (; j > 0 && element.key < x[j - 1].key; --j) x[j] = x[j - 1];
        x[j] = element;
    }
}

template <class E>
class RadixSort {
public:
    using Key = typename E::Key;
    static constexpr int kCount = sizeof(Key);  // digits

    // Sorts x; `other` is memory for as many elements. Gives which of the two holds the result.
    static E* sort(E* x, E* other, int64_t n, Chunks chunks) {
        return RadixSort(n, chunks).run(x, other, kCount);
    }

private:
    int64_t n_;
    Chunks chunks_;
    std::vector<Counts<kCount>> counts_;  // of each chunk: how many elements have a digit; then where they go

    RadixSort(int64_t n, Chunks chunks) : n_(n), chunks_(chunks), counts_(size_t(chunks.count)) {}

    static int digit(Key key, int d) { return int(key >> (8 * d)) & (kDigits - 1); }

    // The loops capture what they use by value: the compiler must suppose that stores change the rest.
    void count(const E* x) {
        chunks_.run([this, x](int64_t chunk, int64_t begin, int64_t end) {
            auto& counts = counts_[size_t(chunk)];
            for (auto& of_digit : counts) of_digit.fill(0);
            for (int64_t i = begin; i < end; ++i) {
                const Key key = x[i].key;
#pragma GCC unroll 8
                for (int d = 0; d < kCount; ++d) ++counts[size_t(d)][size_t(digit(key, d))];
            }
        });
    }

    void count_again(const E* x, int d) {
        chunks_.run([this, x, d](int64_t chunk, int64_t begin, int64_t end) {
            auto& counts = counts_[size_t(chunk)][size_t(d)];
            counts.fill(0);
            for (int64_t i = begin; i < end; ++i) ++counts[size_t(digit(x[i].key, d))];
        });
    }

    // By the digits below `below`.
    E* run(E* x, E* other, int below) {
        count(x);
        std::array<int, kCount> deciding{};
        int used = 0;
        for (int d = 0; d < below; ++d)
            if (decides(d)) deciding[size_t(used++)] = d;
        // Eight bits more than it takes to number the elements leave few ties, also where exponents waste some.
        int enough = (int(std::bit_width(uint64_t(n_))) + 8 + 7) / 8;
        int skipped = std::max(0, used - enough);
        for (int k = skipped; k < used; ++k) {
            int d = deciding[size_t(k)];
            if (k > skipped && chunks_.count > 1) count_again(x, d);  // a chunk has other elements now
            deal(x, other, d);
            std::swap(x, other);
        }
        if (skipped) repair(x, other, 8 * deciding[size_t(skipped)]);
        return x;
    }

    // Whether not all elements have the same digit.
    bool decides(int d) const {
        for (size_t v = 0; v < kDigits; ++v) {
            uint64_t total = 0;
            for (const auto& counts : counts_) total += counts[size_t(d)][v];
            if (total) return total != uint64_t(n_);
        }
        return false;
    }

    void deal(const E* x, E* to, int d) {
        uint64_t place = 0;
        for (size_t v = 0; v < kDigits; ++v)
            for (auto& counts : counts_) place += std::exchange(counts[size_t(d)][v], place);
        chunks_.run([this, x, to, d](int64_t chunk, int64_t begin, int64_t end) {
            auto& next = counts_[size_t(chunk)][size_t(d)];
            for (int64_t i = begin; i < end; ++i) to[next[size_t(digit(x[i].key, d))]++] = x[i];
        });
    }

    // Orders runs of elements that are equal in the bits from `shift` on.
    void repair(E* x, E* other, int shift) {
        std::vector<int64_t> edges{0};
        for (int64_t chunk = 1; chunk <= chunks_.count; ++chunk) {
            int64_t i = std::max(edges.back(), chunks_.begin(chunk));
            while (i > 0 && i < n_ && x[i].key >> shift == x[i - 1].key >> shift) ++i;
            edges.push_back(i);
        }
        chunks_.run([&](int64_t chunk, int64_t, int64_t) {
            int64_t end = edges[size_t(chunk) + 1];
            for (int64_t i = edges[size_t(chunk)]; i < end;) {
                int64_t stop = i + 1;
                while (stop < end && x[stop].key >> shift == x[i].key >> shift) ++stop;
                if (stop - i > kLongRun) sort_run(x + i, other + i, stop - i, shift / 8);
                else if (stop - i <= kInsertion) insertion_sort(x + i, stop - i);
                else std::stable_sort(x + i, x + stop, [](const E& p, const E& q) { return p.key < q.key; });
                i = stop;
            }
        });
    }

    static void sort_run(E* x, E* other, int64_t n, int below) {
        E* sorted = RadixSort(n, Chunks{n, 1}).run(x, other, below);
        if (sorted != x) std::copy(sorted, sorted + n, x);
    }
};

}  // namespace pb
