#include "sorting/selection.h"

#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "sorting/rows.h"
#include "sorting/sort_keys.h"
#include "sorting/sorting.h"
#include "sorting/split.h"

namespace pb {
namespace {

constexpr int kBuckets = 2048;         // their counts stay in the first cache
constexpr int64_t kShort = 1 << 12;    // iterations that are counted in 32 bits, which are faster
constexpr int64_t kSortAll = 1 << 12;  // elements up to which they are sorted
constexpr int64_t kSampled = 1 << 9;   // elements from which a sample helps to find the largest
constexpr int64_t kMaxima = 1 << 10;   // of parts of a row, at most
constexpr int64_t kTwice = 1 << 13;    // elements up to which it is quicker to read them twice than to sort a sample

int64_t sample_size(int64_t n) { return std::clamp<int64_t>(n / 16, 1, 1 << 12); }

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
void encode_all(Kind kind, const typename Kind::Raw* x, typename Kind::Key* keys, Chunks chunks) {
    chunks.run([kind, x, keys](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) keys[i] = kind.encode(x[i]);
    });
}

template <class Kind>
constexpr bool kIsWide = sizeof(typename Kind::Raw) >= 4;

template <class Key>
struct Range {
    Key low, high;
};

// Keys between which a sample says that sorting puts the elements from place `first` to `last`. With four standard
// deviations on both sides it is wrong less than once in ten thousand times; then something slower is done.
template <class Kind>
Range<typename Kind::Key> estimate(Kind kind, const typename Kind::Raw* x, int64_t n, int64_t first, int64_t last) {
    using Key = typename Kind::Key;
    std::array<Key, 1 << 12> sample;
    const int64_t size = sample_size(n), step = n / size;
    uint32_t mixed = 1;
    for (int64_t i = 0; i < size; ++i) {  // one of each `step` elements, so that no period of theirs matters
        mixed = mixed * 1664525u + 1013904223u;  // Numerical Recipes, 7.1
        sample[size_t(i)] = kind.encode(x[i * step + int64_t((uint64_t(mixed) * uint64_t(step)) >> 32)]);
    }
    sort_keys(sample.data(), size);
    auto place_in_sample = [n, size](int64_t place, double side) {
        const double part = double(place) / double(n), deviation = std::sqrt(double(size) * part * (1 - part));
        return int64_t(std::floor(part * double(size) + side * (4 * deviation + 2)));
    };
    const int64_t low = place_in_sample(first, -1), high = place_in_sample(last, 1);
    return {low < 0 ? Key(0) : sample[size_t(low)], high >= size ? Key(~Key(0)) : sample[size_t(high)]};
}

struct Counts {
    int64_t below, inside;
};

// Elements in the range, or their numbers, go to `memory`, room for n, in order; with `out`, those below to its front
// and those above to its end, in reverse. other: memory for n more, if `out` is given.
template <class Kind, bool all, class Out>
Counts split_at(Kind kind, const typename Kind::Raw* x, int64_t n, Range<typename Kind::Key> range, Out* memory,
                Out* out, Out* other, Chunks chunks) {
    if (chunks.count == 1) {
        Out* const target = all ? out : memory;  // otherwise nothing is written there
        Parts<Out> parts{target, memory, target + n};
        split<Kind, all>(kind, x, n, range.low, range.high, parts, 0);
        return {parts.below - target, parts.inside - memory};
    }
    std::vector<Parts<Out>> found(size_t(chunks.count));
    Out* const target = all ? other : memory;
    chunks.run([&found, kind, x, range, memory, target](int64_t chunk, int64_t begin, int64_t end) {
        Parts<Out> parts{target + begin, memory + begin, target + end};
        split<Kind, all>(kind, x + begin, end - begin, range.low, range.high, parts, begin);
        found[size_t(chunk)] = parts;
    });
    std::vector<std::pair<Out*, Out*>> to;  // where a chunk's elements below and above go
    Counts total{0, 0};
    int64_t above = 0;
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
        const Parts<Out>& parts = found[size_t(chunk)];
        const int64_t begin = chunks.begin(chunk), inside = parts.inside - (memory + begin);
        above += target + chunks.begin(chunk + 1) - parts.above;
        if constexpr (all) to.push_back({out + total.below, out + n - above});
        std::copy(memory + begin, memory + begin + inside, memory + total.inside);
        total.below += parts.below - (target + begin);
        total.inside += inside;
    }
    if constexpr (all)
        chunks.run([&found, &to, target](int64_t chunk, int64_t begin, int64_t end) {
            const Parts<Out>& parts = found[size_t(chunk)];
            std::copy(target + begin, parts.below, to[size_t(chunk)].first);
            std::copy(parts.above, target + end, to[size_t(chunk)].second);
        });
    return total;
}

// As select_keys, for elements whose places are few or close together. Whether it has found them.
template <class Kind>
bool select_in_lanes(Kind kind, const typename Kind::Raw* x, int64_t n, const int64_t* places, int64_t count,
                     typename Kind::Key* out, typename Kind::Key* memory, Chunks chunks) {
    constexpr int64_t kRanges = 3;
    int64_t ranges = 0;
    auto end_of_range = [n, places, count](int64_t j) {
        for (++j; j < count && places[j] - places[j - 1] <= n / 64;) ++j;
        return j;
    };
    for (int64_t j = 0; j < count; j = end_of_range(j)) ++ranges;
    if (ranges > kRanges) return false;
    for (int64_t j = 0; j < count;) {
        const int64_t end = end_of_range(j);
        const auto range = estimate(kind, x, n, places[j], places[end - 1]);
        const Counts counts = split_at<Kind, false, typename Kind::Raw>(kind, x, n, range, memory, nullptr, nullptr,
                                                                        chunks);
        if (places[j] < counts.below || places[end - 1] >= counts.below + counts.inside) return false;
        if (range.low == range.high) {
            std::fill(out + j, out + end, range.low);
        } else if (counts.inside > n / 2) {
            return false;
        } else {
            encode_all(kind, memory, memory, Chunks{counts.inside, 1});
            std::vector<int64_t> inside(places + j, places + end);
            for (int64_t& place : inside) place -= counts.below;
            select_keys(memory, counts.inside, inside.data(), end - j, out + j, memory + n, memory,
                        Chunks{counts.inside, 1});
        }
        j = end;
    }
    return true;
}

// The elements at `places` with their own bits: zeros have two signs and NaN many, and the first come first.
template <class Kind>
void select_row(Kind kind, const typename Kind::Raw* x, int64_t n, const int64_t* places, int64_t count,
                typename Kind::Raw* selected, void* scratch, Chunks chunks) {
    using Key = typename Kind::Key;
    auto* keys = static_cast<Key*>(scratch);
    std::vector<Key> found(size_t(count), 0);
    bool is_found = false;
    if constexpr (kIsWide<Kind>)
        if (n > kSortAll && splits_in_lanes())
            is_found = select_in_lanes(kind, x, n, places, count, found.data(), keys, chunks);
    if (!is_found) {
        encode_all(kind, x, keys, chunks);
        select_keys(keys, n, places, count, found.data(), keys + n, keys, chunks);
    }
    bool any_special = false;
    if constexpr (Kind::has_specials) {
        const bool any_zero = std::find(found.begin(), found.end(), kind.encode(0)) != found.end();
        const auto nan = typename Kind::Key(typename Kind::Raw(~typename Kind::Raw(0)));
        if (any_zero || found.back() == nan)
            for (int64_t i = 0; i < n; ++i) any_special |= kind.is_special(x[i]);
    }
    for (size_t j = 0; j < size_t(count); ++j) {
        selected[j] = kind.decode(found[j]);
        if (!any_special || (selected[j] != 0 && !kind.is_special(selected[j]))) continue;
        int64_t ahead = places[j];
        for (int64_t i = 0; i < n; ++i) ahead -= kind.encode(x[i]) < found[j];
        for (int64_t i = 0; i < n; ++i)
            if (kind.encode(x[i]) == found[j] && ahead-- == 0) {
                selected[j] = x[i];
                break;
            }
    }
}

// result(i) is written for element i: before the middle, behind it, or in it, as its key compares with the pivot.
template <class Kind, class Out, class Result>
void part_row(Kind kind, const typename Kind::Raw* x, int64_t n, int64_t place, Out* out, const Result& result,
              void* scratch, Chunks chunks) {
    using Key = typename Kind::Key;
    auto* keys = static_cast<Key*>(scratch);
    Key pivot = 0;
    encode_all(kind, x, keys, chunks);
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

// A row of elements of 4 or 8 bytes, or their numbers, as part_row has them but for the order of elements.
template <class Kind, class Out>
void part_lanes(Kind kind, const typename Kind::Raw* x, int64_t n, int64_t place, Out* out, typename Kind::Key* scratch,
                Chunks chunks) {
    constexpr bool are_numbers = std::is_same_v<Out, int32_t>;
    if (n > kSortAll && splits_in_lanes()) {
        auto *inside = reinterpret_cast<Out*>(scratch), *other = reinterpret_cast<Out*>(scratch + n);
        const auto range = estimate(kind, x, n, place, place);
        const Counts counts = split_at<Kind, true>(kind, x, n, range, inside, out, other, chunks);
        if (const int64_t rest = place - counts.below; 0 <= rest && rest < counts.inside) {
            Out* const to = out + counts.below;
            const int64_t size = counts.inside;
            if (range.low == range.high) return void(std::copy(inside, inside + size, to));
            if (size <= n / 2) {
                auto *elements = scratch + n, *more = scratch + n + size;
                for (int64_t i = 0; i < size; ++i)
                    if constexpr (are_numbers) elements[i] = x[inside[i]];
                    else elements[i] = inside[i];
                part_lanes(kind, elements, size, rest, to, more, Chunks{size, 1});
                if constexpr (are_numbers)
                    for (int64_t i = 0; i < size; ++i) to[i] = inside[to[i]];
                return;
            }
        }
    }
    auto result = [x](int64_t i) {
        if constexpr (are_numbers) return int32_t(i);
        else return x[i];
    };
    part_row(kind, x, n, place, out, result, scratch, chunks);
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
    static constexpr int64_t kSorted = 0;  // up to so many are sorted as quickly as some are selected
    static void sort(Candidate* x, int64_t n) { std::sort(x, x + n); }
};

template <>
struct Candidate<uint32_t> {
    uint64_t packed;
    Candidate() = default;
    Candidate(uint32_t key, int64_t i) : packed(uint64_t(~key) << 32 | uint32_t(i)) {}
    uint32_t key() const { return ~uint32_t(packed >> 32); }
    bool operator<(const Candidate& other) const { return packed < other.packed; }
    static constexpr int64_t kSorted = 256;
    static void sort(Candidate* x, int64_t n) { quick_sorts[kU64](x, n, nullptr); }
};

constexpr int64_t kBlock = 32;  // elements of which it is asked together whether any is a candidate

// Appends the elements of x[begin, end) whose keys are `least` or more, unless they are more than `most`.
template <class Kind, class C>
void find_from(Kind kind, const typename Kind::Raw* x, int64_t begin, int64_t end, typename Kind::Key least,
               int64_t most, std::vector<C>& found) {
    int64_t size = 0;
    found.resize(size_t(most + kBlock));
    for (int64_t i = begin; i < end && size <= most; i += kBlock) {
        const int64_t length = std::min(kBlock, end - i);
        typename Kind::Key keys[kBlock] = {};
        unsigned any = 0;
        if (length == kBlock)
            for (int64_t j = 0; j < kBlock; ++j) any |= (keys[j] = kind.encode(x[i + j])) >= least;
        else
            for (int64_t j = 0; j < length; ++j) any |= (keys[j] = kind.encode(x[i + j])) >= least;
        if (!any) continue;
        C* const to = found.data();
        for (int64_t j = 0; j < length; ++j) {
            to[size] = C(keys[j], i + j);
            size += keys[j] >= least;
        }
    }
    found.resize(size_t(size));
}

// Appends the candidates for the k largest of x[begin, end): at least these, at most about 2 k.
template <class Kind, class C>
void find_candidates(Kind kind, const typename Kind::Raw* x, int64_t begin, int64_t end, int64_t k,
                     std::vector<C>& found) {
    size_t start = found.size(), full = start + size_t(2 * k) + 256;
    int64_t i = begin;
    found.resize(std::min(full, start + size_t(end - begin)));
    for (auto it = found.begin() + int64_t(start); it != found.end(); ++it, ++i) *it = C(kind.encode(x[i]), i);
    auto shrink = [&] {
        std::nth_element(found.begin() + int64_t(start), found.begin() + int64_t(start) + k - 1, found.end());
        found.resize(start + size_t(k));
        return found.back().key();
    };
    if (i == end) return;
    auto least = shrink();
    auto consider = [&](int64_t at) {
        auto key = kind.encode(x[at]);
        if (key > least) found.emplace_back(key, at);
    };
    for (; i + kBlock <= end; i += kBlock) {
        unsigned any = 0;
        for (int64_t j = 0; j < kBlock; ++j) any |= kind.encode(x[i + j]) > least;
        if (!any) continue;
        for (int64_t j = 0; j < kBlock; ++j) consider(i + j);
        if (found.size() >= full) least = shrink();
    }
    for (; i < end; ++i) consider(i);
}

// A key that at least k elements reach, and hardly more: the k-th largest of the maxima of `parts` parts of a row, each
// of every parts-th element, so that lanes find them.
template <class Kind>
typename Kind::Key reached(Kind kind, const typename Kind::Raw* x, int64_t n, int64_t k, int64_t parts) {
    using Key = typename Kind::Key;
    std::array<Key, kMaxima> best;
    Key* const of = best.data();
    for (int64_t j = 0; j < parts; ++j) of[j] = kind.encode(x[j]);
    int64_t i = parts;
    for (; i + parts <= n; i += parts)
        for (int64_t j = 0; j < parts; ++j) {
            const Key key = kind.encode(x[i + j]);
            of[j] = key > of[j] ? key : of[j];
        }
    for (int64_t j = 0; i + j < n; ++j) of[j] = std::max(of[j], kind.encode(x[i + j]));
    std::nth_element(of, of + parts - k, of + parts);
    return of[parts - k];
}

template <class Kind>
void top_row(Kind kind, const typename Kind::Raw* x, int64_t n, int64_t k, typename Kind::Raw* values, int32_t* numbers,
             Chunks chunks, std::vector<Candidate<typename Kind::Key>>& found) {
    using C = Candidate<typename Kind::Key>;
    found.clear();
    if (k * chunks.count * 4 > n) chunks.count = 1;
    auto gather = [&found, n, chunks](auto find) {
        if (chunks.count == 1) return find(0, n, found);
        std::vector<std::vector<C>> parts(size_t(chunks.count));
        chunks.run([&](int64_t chunk, int64_t begin, int64_t end) { find(begin, end, parts[size_t(chunk)]); });
        for (const auto& part : parts) found.insert(found.end(), part.begin(), part.end());
    };
    bool is_found = false;
    const int64_t parts = std::max<int64_t>(64, int64_t(std::bit_ceil(uint64_t(4 * k))));
    if (n > C::kSorted && chunks.count == 1 && n <= kTwice && parts <= kMaxima && 2 * parts <= n) {
        const auto least = reached(kind, x, n, k, parts);
        const int64_t most = 2 * k + 64;  // more where many are equal
        find_from(kind, x, 0, n, least, most, found);
        is_found = int64_t(found.size()) <= most;
    } else if (n >= kSampled) {
        const auto least = estimate(kind, x, n, n - k, n - k).low;
        const int64_t step = n / sample_size(n);
        // Twice what is expected; there are more where many are equal.
        const int64_t most = 2 * k + 16 * step + int64_t(8 * std::sqrt(double(k * step)));
        gather([=](int64_t begin, int64_t end, auto& to) { find_from(kind, x, begin, end, least, most, to); });
        is_found = k <= int64_t(found.size()) && int64_t(found.size()) <= most;
    }
    if (!is_found) {
        found.clear();
        gather([=](int64_t begin, int64_t end, auto& to) { find_candidates(kind, x, begin, end, k, to); });
    }
    if (int64_t(found.size()) > std::max(2 * k, C::kSorted)) {
        std::nth_element(found.begin(), found.begin() + k - 1, found.end());
        found.resize(size_t(k));
    }
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

void pb_select(int64_t number, int64_t rows, int64_t n, int64_t count, const int64_t* places, const void* x,
               void* selected, void* scratch) {
    using namespace pb;
    with_kind(number, [&](auto kind) {
        using Kind = decltype(kind);
        using Raw = typename Kind::Raw;
        for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
            select_row(kind, static_cast<const Raw*>(x) + r * n, n, places, count,
                             static_cast<Raw*>(selected) + r * count,
                             static_cast<typename Kind::Key*>(scratch) + 2 * first * n, chunks);
        });
    });
}

void pb_partition(int64_t number, int64_t numbers, int64_t rows, int64_t n, int64_t place, const void* x, void* result,
                  void* scratch) {
    using namespace pb;
    with_kind(number, [&](auto kind) {
        using Kind = decltype(kind);
        using Raw = typename Kind::Raw;
        for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
            const Raw* row = static_cast<const Raw*>(x) + r * n;
            auto* memory = static_cast<typename Kind::Key*>(scratch) + 3 * first * n;
            auto* places = static_cast<int32_t*>(result) + r * n;
            auto* elements = static_cast<Raw*>(result) + r * n;
            if constexpr (kIsWide<Kind>) {
                if (numbers) part_lanes(kind, row, n, place, places, memory, chunks);
                else part_lanes(kind, row, n, place, elements, memory, chunks);
            } else if (numbers) {
                part_row(kind, row, n, place, places, [](int64_t i) { return int32_t(i); }, memory, chunks);
            } else {
                part_row(kind, row, n, place, elements, [row](int64_t i) { return row[i]; }, memory, chunks);
            }
        });
    });
}

void pb_top_k(int64_t number, int64_t rows, int64_t n, int64_t k, const void* x, void* values, void* numbers) {
    using namespace pb;
    if (k == 0 || n == 0) return;
    with_total_kind(number, [&](auto kind) {
        using Kind = decltype(kind);
        using Raw = typename Kind::Raw;
        auto row = [&](int64_t r, Chunks chunks, auto& found) {
            top_row(kind, static_cast<const Raw*>(x) + r * n, n, k, static_cast<Raw*>(values) + r * k,
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
