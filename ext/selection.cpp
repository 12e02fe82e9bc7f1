#include "selection.h"

#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "rows.h"
#include "sort_keys.h"
#include "sorting.h"

namespace pb {
namespace {

constexpr int kBuckets = 2048;         // their counts stay in the first cache
constexpr int64_t kShort = 1 << 12;    // iterations that are counted in 32 bits, which are faster
constexpr int64_t kSortAll = 1 << 12;  // elements up to which they are sorted

template <class Key>
void sort_keys(Key* keys, int64_t n) {
    quick_sorts[sizeof(Key) == 8 ? kU64 : kU32](keys, n, nullptr);
}

// The loops capture what they use by value: the compiler must suppose that stores change what is captured by reference.

// out[j] = the key that sorting would put at places[j]. memory, other: n keys each; `other` may be `keys` itself.
//
// Keys are dealt into buckets of equal width between the smallest and the largest; only buckets that hold a place are
// looked at again. Each time a bucket is 2048 times as narrow, so it ends also for the most uneven numbers.
template <class Key>
void select_keys(const Key* keys, int64_t n, const int64_t* places, int64_t count, Key* out, Key* memory, Key* other,
                 Chunks chunks) {
    if (n <= kSortAll) {
        std::copy(keys, keys + n, memory);
        sort_keys(memory, n);
        for (int64_t j = 0; j < count; ++j) out[j] = memory[places[j]];
        return;
    }
    std::vector<std::pair<Key, Key>> bounds(size_t(chunks.count));
    chunks.run([&bounds, keys](int64_t chunk, int64_t begin, int64_t end) {
        Key low = keys[begin], high = low;
        for (int64_t i = begin; i < end; ++i) {
            Key key = keys[i];
            low = std::min(low, key);
            high = std::max(high, key);
        }
        bounds[size_t(chunk)] = {low, high};
    });
    auto [low, high] = bounds[0];
    for (auto [l, h] : bounds) low = std::min(low, l), high = std::max(high, h);
    if (low == high) return void(std::fill(out, out + count, low));
    int shift = std::max(0, int(std::bit_width(Key(high - low))) - int(std::bit_width(unsigned(kBuckets - 1))));
    auto bucket_of = [low = low, shift](Key key) { return size_t(Key(key - low) >> shift); };

    std::vector<std::array<int64_t, kBuckets>> counts(size_t(chunks.count));
    chunks.run([&counts, keys, bucket_of](int64_t chunk, int64_t begin, int64_t end) {
        auto& mine = counts[size_t(chunk)];
        mine.fill(0);
        for (int64_t i = begin; i < end; ++i) ++mine[bucket_of(keys[i])];
    });

    struct Wanted {
        size_t bucket;
        int64_t before, size, start;  // elements in lower buckets, in this one; where they are collected
        int64_t first, last;          // its places
    };
    std::vector<Wanted> wanted;
    std::vector<uint8_t> is_wanted(kBuckets, 0);
    int64_t before = 0, start = 0;
    for (size_t bucket = 0, j = 0; bucket < kBuckets && j < size_t(count); ++bucket) {
        int64_t size = 0;
        for (auto& mine : counts) size += mine[bucket];
        size_t first = j;
        while (j < size_t(count) && places[j] < before + size) ++j;
        if (j > first) {
            wanted.push_back({bucket, before, size, start, int64_t(first), int64_t(j)});
            is_wanted[bucket] = 1;
            int64_t place = start;
            for (auto& mine : counts) place += std::exchange(mine[bucket], place);
            start += size;
        }
        before += size;
    }
    chunks.run([&counts, keys, bucket_of, memory, held = is_wanted.data()](int64_t chunk, int64_t begin, int64_t end) {
        auto& next = counts[size_t(chunk)];
        for (int64_t i = begin; i < end; ++i) {
            Key key = keys[i];
            size_t bucket = bucket_of(key);
            if (held[bucket]) memory[next[bucket]++] = key;
        }
    });
    for (const Wanted& w : wanted) {
        std::vector<int64_t> inside(places + w.first, places + w.last);
        for (int64_t& place : inside) place -= w.before;
        select_keys(memory + w.start, w.size, inside.data(), w.last - w.first, out + w.first, other + w.start,
                    memory + w.start, Chunks{w.size, 1});
    }
}

template <class Kind>
void encode_all(const typename Kind::Raw* x, typename Kind::Key* keys, Chunks chunks) {
    chunks.run([x, keys](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) keys[i] = Kind::encode(x[i]);
    });
}

// The elements at `places` with their own bits: zeros have two signs and NaN many, and the first come first.
template <class Kind>
void select_row(const typename Kind::Raw* x, int64_t n, const int64_t* places, int64_t count,
                typename Kind::Raw* selected, void* scratch, Chunks chunks) {
    using Key = typename Kind::Key;
    auto* keys = static_cast<Key*>(scratch);
    std::vector<Key> found(size_t(count), 0);
    encode_all<Kind>(x, keys, chunks);
    select_keys(keys, n, places, count, found.data(), keys + n, keys, chunks);
    for (size_t j = 0; j < size_t(count); ++j) {
        selected[j] = Kind::decode(found[j]);
        if (!Kind::has_specials || (selected[j] != 0 && !Kind::is_special(selected[j]))) continue;
        int64_t ahead = places[j];
        for (int64_t i = 0; i < n; ++i) ahead -= Kind::encode(x[i]) < found[j];
        for (int64_t i = 0; i < n; ++i)
            if (Kind::encode(x[i]) == found[j] && ahead-- == 0) {
                selected[j] = x[i];
                break;
            }
    }
}

// result(i) is written for element i: before the middle, behind it, or in it, as its key compares with the pivot.
template <class Kind, class Out, class Result>
void part_row(const typename Kind::Raw* x, int64_t n, int64_t place, Out* out, const Result& result, void* scratch,
              Chunks chunks) {
    using Key = typename Kind::Key;
    auto* keys = static_cast<Key*>(scratch);
    Key pivot = 0;
    encode_all<Kind>(x, keys, chunks);
    select_keys(keys, n, &place, 1, &pivot, keys + n, keys + 2 * n, chunks);
    struct Count {
        int64_t below, above, equal;
    };
    std::vector<Count> counts(size_t(chunks.count));
    chunks.run([&counts, keys, pivot](int64_t chunk, int64_t begin, int64_t end) {
        int64_t below = 0, above = 0;
        for (int64_t i = begin; i < end; i += kShort) {
            uint32_t low = 0, high = 0;
            for (int64_t j = i; j < std::min(end, i + kShort); ++j) {
                low += keys[j] < pivot;
                high += keys[j] > pivot;
            }
            below += low;
            above += high;
        }
        counts[size_t(chunk)] = {below, above, end - begin - below - above};
    });
    std::vector<Count> starts;
    Count at{0, n, 0};
    for (const Count& count : counts) at.equal += count.below;
    for (const Count& count : counts) {
        starts.push_back(at);
        at = {at.below + count.below, at.above - count.above, at.equal + count.equal};
    }
    chunks.run([&counts, &starts, keys, out, result, pivot](int64_t chunk, int64_t begin, int64_t end) {
        auto [low, high, middle] = starts[size_t(chunk)];
        int64_t low_end = low + counts[size_t(chunk)].below, high_end = high - counts[size_t(chunk)].above;
        int64_t i = begin;
        // Both places are written and one is kept, as many times as neither can be the last: no branch to mispredict.
        for (int64_t batch; (batch = std::min({low_end - low, high - high_end, end - i})) > 0;)
            for (; batch > 0; --batch, ++i) {
                Key key = keys[i];
                out[low] = out[high - 1] = result(i);
                low += int64_t(key < pivot);
                high -= int64_t(key > pivot);
            }
        for (; i < end; ++i) {
            Key key = keys[i];
            if (key < pivot) out[low++] = result(i);
            else if (key > pivot) out[--high] = result(i);
        }
        for (i = begin; i < end; ++i)
            if (keys[i] == pivot) out[middle++] = result(i);
    });
}

// An element that may be among the largest: the smaller candidate is the larger element, or the earlier of equal ones.
template <class Key>
struct Candidate {
    Key inverted;
    uint32_t number;
    Candidate() = default;
    Candidate(Key key, int64_t i) : inverted(~key), number(uint32_t(i)) {}
    Key key() const { return ~inverted; }
    bool operator<(const Candidate& other) const {
        return inverted != other.inverted ? inverted < other.inverted : number < other.number;
    }
    static void sort(Candidate* x, int64_t n) { std::sort(x, x + n); }
};

template <>
struct Candidate<uint32_t> {
    uint64_t packed;
    Candidate() = default;
    Candidate(uint32_t key, int64_t i) : packed(uint64_t(~key) << 32 | uint32_t(i)) {}
    uint32_t key() const { return ~uint32_t(packed >> 32); }
    bool operator<(const Candidate& other) const { return packed < other.packed; }
    static void sort(Candidate* x, int64_t n) { quick_sorts[kU64](x, n, nullptr); }
};

// Appends the candidates for the k largest of x[begin, end): at least these, at most about 2 k.
template <class Kind, class C>
void find_candidates(const typename Kind::Raw* x, int64_t begin, int64_t end, int64_t k, std::vector<C>& found) {
    constexpr int64_t kBlock = 32;
    size_t start = found.size(), full = start + size_t(2 * k) + 256;
    int64_t i = begin;
    for (; i < end && found.size() < full; ++i) found.emplace_back(Kind::encode(x[i]), i);
    auto shrink = [&] {
        std::nth_element(found.begin() + int64_t(start), found.begin() + int64_t(start) + k - 1, found.end());
        found.resize(start + size_t(k));
        return found.back().key();
    };
    if (i == end) return;
    auto least = shrink();
    auto consider = [&](int64_t at) {
        auto key = Kind::encode(x[at]);
        if (key > least) found.emplace_back(key, at);
    };
    for (; i + kBlock <= end; i += kBlock) {
        unsigned any = 0;
        for (int64_t j = 0; j < kBlock; ++j) any |= Kind::encode(x[i + j]) > least;
        if (!any) continue;
        for (int64_t j = 0; j < kBlock; ++j) consider(i + j);
        if (found.size() >= full) least = shrink();
    }
    for (; i < end; ++i) consider(i);
}

template <class Kind>
void top_row(const typename Kind::Raw* x, int64_t n, int64_t k, typename Kind::Raw* values, int32_t* numbers,
             Chunks chunks, std::vector<Candidate<typename Kind::Key>>& found) {
    using C = Candidate<typename Kind::Key>;
    found.clear();
    if (k * chunks.count * 4 > n) chunks.count = 1;
    if (chunks.count == 1) {
        find_candidates<Kind>(x, 0, n, k, found);
    } else {
        std::vector<std::vector<C>> parts(size_t(chunks.count));
        chunks.run([&](int64_t chunk, int64_t begin, int64_t end) {
            find_candidates<Kind>(x, begin, end, k, parts[size_t(chunk)]);
        });
        for (const auto& part : parts) found.insert(found.end(), part.begin(), part.end());
    }
    if (int64_t(found.size()) > 2 * k) std::nth_element(found.begin(), found.begin() + k - 1, found.end()), found.resize(size_t(k));
    C::sort(found.data(), int64_t(found.size()));
    for (int64_t j = 0; j < k; ++j) {
        uint32_t number;
        if constexpr (sizeof(typename Kind::Key) == 8) number = found[size_t(j)].number;
        else number = uint32_t(found[size_t(j)].packed);
        numbers[j] = int32_t(number);
        values[j] = x[number];
    }
}

}  // namespace
}  // namespace pb

extern "C" {

void pb_select(int64_t kind, int64_t rows, int64_t n, int64_t count, const int64_t* places, const void* x,
               void* selected, void* scratch) {
    using namespace pb;
    with_kind(kind, [&](auto k) {
        using Kind = decltype(k);
        using Raw = typename Kind::Raw;
        for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
            select_row<Kind>(static_cast<const Raw*>(x) + r * n, n, places, count,
                             static_cast<Raw*>(selected) + r * count,
                             static_cast<typename Kind::Key*>(scratch) + 2 * first * n, chunks);
        });
    });
}

void pb_partition(int64_t kind, int64_t numbers, int64_t rows, int64_t n, int64_t place, const void* x, void* result,
                  void* scratch) {
    using namespace pb;
    with_kind(kind, [&](auto k) {
        using Kind = decltype(k);
        using Raw = typename Kind::Raw;
        for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
            const Raw* row = static_cast<const Raw*>(x) + r * n;
            void* memory = static_cast<typename Kind::Key*>(scratch) + 3 * first * n;
            if (numbers)
                part_row<Kind>(row, n, place, static_cast<int32_t*>(result) + r * n,
                               [](int64_t i) { return int32_t(i); }, memory, chunks);
            else
                part_row<Kind>(row, n, place, static_cast<Raw*>(result) + r * n, [row](int64_t i) { return row[i]; },
                               memory, chunks);
        });
    });
}

void pb_top_k(int64_t kind, int64_t rows, int64_t n, int64_t k, const void* x, void* values, void* numbers) {
    using namespace pb;
    if (k == 0 || n == 0) return;
    with_kind(kind, [&](auto tag) {
        using Kind = decltype(tag);
        using Raw = typename Kind::Raw;
        auto row = [&](int64_t r, Chunks chunks, auto& found) {
            top_row<Kind>(static_cast<const Raw*>(x) + r * n, n, k, static_cast<Raw*>(values) + r * k,
                          static_cast<int32_t*>(numbers) + r * k, chunks, found);
        };
        using Found = std::vector<Candidate<typename Kind::Key>>;
        if (rows >= num_threads() || n <= kChunk) {
            parallel(rows, std::max<int64_t>(1, kRowGrain / n), [&](int64_t begin, int64_t end) {
                Found found;
                for (int64_t r = begin; r < end; ++r) row(r, Chunks{n, 1}, found);
            });
        } else {
            Found found;
            for (int64_t r = 0; r < rows; ++r) row(r, Chunks::of(n, kChunk), found);
        }
    });
}

}  // extern "C"
