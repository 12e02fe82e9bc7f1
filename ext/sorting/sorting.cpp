#include "sorting/sorting.h"

#include <array>

#include "sorting/even_sort.h"
#include "sorting/merge.h"
#include "sorting/packed_sort.h"
#include "sorting/radix_sort.h"
#include "sorting/rows.h"

namespace pb {

namespace {

constexpr int kShort = 16;          // elements up to which their places are counted
constexpr int64_t kQuick = 1 << 9;  // elements up to which NumPy's vectors beat counting digits
constexpr size_t kBytes = 256;      // different bytes

// Zeros of both signs, and NaN, as they came: their keys are alike.
template <class Kind>
void restore_specials(Kind kind, const typename Kind::Raw* x, typename Kind::Raw* sorted, int64_t n) {
    const auto zero = kind.encode(0);
    const auto nan = typename Kind::Key(typename Kind::Raw(~typename Kind::Raw(0)));
    int64_t next_zero = 0, next_nan = n;
    for (int64_t i = 0; i < n; ++i) {
        auto key = kind.encode(x[i]);
        next_zero += key < zero;
        next_nan -= key == nan;
    }
    for (int64_t i = 0; i < n; ++i) {
        auto key = kind.encode(x[i]);
        if (key == zero) sorted[next_zero++] = x[i];
        else if (key == nan) sorted[next_nan++] = x[i];
    }
}

// rank[i]: how many elements come before x[i], for 1 <= n <= W. No branch depends on the elements.
template <class Kind, int W>
void rank_all(Kind kind, const typename Kind::Raw* x, int64_t n, int32_t* rank) {
    using Key = std::make_signed_t<typename Kind::Key>;  // which vectors compare
    constexpr auto kSign = typename Kind::Key(typename Kind::Key(1) << (8 * sizeof(Key) - 1));
    Key keys[W] = {};
    int32_t found[W] = {};
    for (int64_t i = 0; i < n; ++i) keys[i] = Key(kind.encode(x[i]) ^ kSign);
    for (int32_t j = 0; j < int32_t(n); ++j) {
        const Key key = keys[j];
#pragma GCC unroll 1  // unrolled before vectors are looked for, 9 to 16 elements took 1.7 times as long
        for (int32_t i = 0; i < W; ++i) found[i] += int32_t(key < keys[i]) | (int32_t(key == keys[i]) & int32_t(j < i));
    }
    std::copy(found, found + W, rank);
}

template <class Kind>
void rank_short(Kind kind, const typename Kind::Raw* x, int64_t n, int32_t* rank) {
    if (n <= kShort / 2) rank_all<Kind, kShort / 2>(kind, x, n, rank);
    else rank_all<Kind, kShort>(kind, x, n, rank);
}

// How often each of 256 values occurs.
template <class Kind>
void sort_bytes(Kind kind, const uint8_t* x, uint8_t* sorted, Chunks chunks) {
    std::vector<std::array<uint64_t, kBytes>> counts(size_t(chunks.count));
    chunks.run([&](int64_t chunk, int64_t begin, int64_t end) {
        std::array<std::array<uint32_t, kBytes>, 4> four{};  // equal neighbours would wait for each other's count
        int64_t i = begin;
        for (; i + 4 <= end; i += 4)
            for (size_t j = 0; j < 4; ++j) ++four[j][x[size_t(i) + j]];
        for (; i < end; ++i) ++four[0][x[i]];
        for (size_t v = 0; v < kBytes; ++v) counts[size_t(chunk)][v] = uint64_t(four[0][v]) + four[1][v] + four[2][v] + four[3][v];
    });
    for (uint32_t key = 0; key < kBytes; ++key) {
        uint8_t value = kind.decode(key);
        size_t total = 0;
        for (auto& chunk : counts) total += chunk[value];
        std::memset(sorted, value, total);
        sorted += total;
    }
}

// Short elements have few digits.
template <class Kind>
void sort_digits(Kind kind, const typename Kind::Raw* x, typename Kind::Raw* sorted, int64_t n, void* scratch,
                 Chunks chunks) {
    using E = Element<typename Kind::Key, None>;
    E* a = static_cast<E*>(scratch);
    E* result = radix_sort<E>([kind, x](int64_t i) { return E{kind.encode(x[i])}; }, a, a + n, n, chunks);
    chunks.run([kind, sorted, result](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sorted[i] = kind.decode(result[i].key);
    });
}

// Moves the runs together without the NaN at their ends.
template <class Number>
void drop_missing(Number* runs, std::vector<int64_t>& sizes, Chunks chunks) {
    Number* to = runs;
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
        Number* run = runs + chunks.begin(chunk);
        Number* end = std::partition_point(run, run + sizes[size_t(chunk)], [](Number v) { return v == v; });
        std::copy(run, end, to);
        to += sizes[size_t(chunk)] = end - run;
    }
}

// By NumPy's vectors, in runs that are merged; zeros and NaN, which it takes in any order, are put back as they came.
template <class Number, class Kind>
void sort_wide(Kind kind, int64_t number, const typename Kind::Raw* x, typename Kind::Raw* sorted, int64_t n,
               void* scratch, Chunks chunks) {
    auto quick_sort = quick_sorts[number];
    if (chunks.count == 1) {
        bool any = false;
        for (int64_t i = 0; i < n; ++i) {
            any |= kind.is_special(x[i]);
            sorted[i] = x[i];
        }
        quick_sort(sorted, n, scratch);
        if constexpr (std::is_floating_point_v<Number>)
            if (any) restore_specials(kind, x, sorted, n);
        return;
    }
    auto* result = reinterpret_cast<Number*>(sorted);
    auto* other = static_cast<Number*>(scratch);
    chunks.count = int64_t(std::bit_floor(uint64_t(chunks.count)));
    bool odd = std::bit_width(uint64_t(chunks.count)) % 2 == 0;  // an odd number of merges: they start in the scratch
    Number* runs = odd ? other : result;
    std::vector<int64_t> sizes(size_t(chunks.count));
    std::vector<char> special(size_t(chunks.count), 0);
    Number* const rest = odd ? result : other;
    chunks.run([&special, &sizes, kind, x, runs, rest, quick_sort](int64_t chunk, int64_t begin, int64_t end) {
        auto* run = reinterpret_cast<typename Kind::Raw*>(runs + begin);
        bool any = false;
        for (int64_t i = begin; i < end; ++i) {
            any |= kind.is_special(x[i]);
            run[i - begin] = x[i];
        }
        quick_sort(run, end - begin, rest + begin);
        special[size_t(chunk)] = any;
        sizes[size_t(chunk)] = end - begin;
    });
    bool any = std::find(special.begin(), special.end(), 1) != special.end();
    if (any) drop_missing(runs, sizes, chunks);
    merge_all(runs, odd ? result : other, std::move(sizes), chunks.count);
    if constexpr (std::is_floating_point_v<Number>)
        if (any) restore_specials(kind, x, sorted, n);
}

template <class Kind>
void sort_row(Kind kind, int64_t number, const typename Kind::Raw* x, typename Kind::Raw* sorted, int64_t n,
              void* scratch, Chunks chunks) {
    if (n <= kShort) {
        int32_t rank[kShort];
        rank_short(kind, x, n, rank);
        for (int64_t i = 0; i < n; ++i) sorted[rank[i]] = x[i];
    } else if constexpr (sizeof(typename Kind::Raw) == 1) {
        sort_bytes(kind, x, sorted, chunks);
    } else if constexpr (sizeof(typename Kind::Raw) == 2) {
        sort_digits(kind, x, sorted, n, scratch, chunks);
        if constexpr (Kind::has_specials) restore_specials(kind, x, sorted, n);
    } else {
        using Raw = typename Kind::Raw;
        if constexpr (Kind::has_specials)
            sort_wide<typename Kind::Number>(kind, number, x, sorted, n, scratch, chunks);
        else if (kind.is_signed())
            sort_wide<std::make_signed_t<Raw>>(kind, number, x, sorted, n, scratch, chunks);
        else
            sort_wide<Raw>(kind, number, x, sorted, n, scratch, chunks);
    }
}

// As packed_sort says; floats are too uneven, and short numbers have few digits.
template <class Kind>
Packed try_packed(Kind kind, const typename Kind::Raw* keys, int64_t n, void* scratch) {
    if constexpr (sizeof(typename Kind::Raw) == 4 && !Kind::has_specials) {
        auto* words = static_cast<uint32_t*>(scratch);
        if (n > kQuick && n <= kPacked)
            return packed_sort([kind, keys](int64_t i) { return uint32_t(kind.encode(keys[i])); }, n, words);
    }
    return {};
}

template <class Kind, class Payload>
void sort_pairs_row(Kind kind, const typename Kind::Raw* keys, const Payload* payloads, typename Kind::Raw* sorted_keys,
                    Payload* sorted_payloads, int64_t n, void* scratch, Chunks chunks) {
    using Key = typename Kind::Key;
    using E = Element<Key, Payload>;
    if (n <= kShort) {
        int32_t rank[kShort];
        rank_short(kind, keys, n, rank);
        for (int64_t i = 0; i < n; ++i) {
            if (sorted_keys) sorted_keys[rank[i]] = keys[i];
            sorted_payloads[rank[i]] = payloads[i];
        }
        return;
    }
    if (sizeof(Key) == 4 && n > kInsertion && n <= kQuick) {  // key and place are one number, so that no two are equal
        auto* packed = static_cast<uint64_t*>(scratch);
        for (int64_t i = 0; i < n; ++i) packed[i] = uint64_t(kind.encode(keys[i])) << 32 | uint64_t(i);
        quick_sorts[kU64](packed, n, nullptr);
        for (int64_t i = 0; i < n; ++i) {
            if (sorted_keys) sorted_keys[i] = kind.decode(Key(packed[i] >> 32));
            sorted_payloads[i] = payloads[uint32_t(packed[i])];
        }
    } else if (const Packed order = try_packed(kind, keys, n, scratch)) {
        for (int64_t i = 0; i < n; ++i) {
            const uint32_t place = order[i];
            if (sorted_keys) sorted_keys[i] = keys[place];
            sorted_payloads[i] = payloads[place];
        }
    } else {
        E *const a = static_cast<E*>(scratch), *const b = a + n;
        auto source = [kind, keys, payloads](int64_t i) { return E{kind.encode(keys[i]), payloads[i]}; };
        if constexpr (sizeof(typename Kind::Raw) == 4 && !Kind::has_specials) {
            auto key_of = [kind, keys](int64_t i) { return kind.encode(keys[i]); };
            auto put = [kind, sorted_keys, sorted_payloads](int64_t place, const E& element) {
                if (sorted_keys) sorted_keys[place] = kind.decode(element.key);
                sorted_payloads[place] = element.payload;
            };
            if (n > kPacked && even_sort<E>(key_of, source, put, a, b, n, chunks)) return;
        }
        E* result;
        if constexpr (Kind::has_specials) {  // whose keys cost something
            chunks.run([&](int64_t, int64_t begin, int64_t end) {
                const auto from = source;
                E* const to = b;
                for (int64_t i = begin; i < end; ++i) to[i] = from(i);
            });
            result = radix_sort<E>(Stored<E>{b}, a, b, n, chunks);
        } else {
            result = radix_sort<E>(source, a, b, n, chunks);
        }
        chunks.run([&](int64_t, int64_t begin, int64_t end) {
            const E* const from = result;
            auto* const to_keys = sorted_keys;
            Payload* const to_payloads = sorted_payloads;
            for (int64_t i = begin; i < end; ++i) {
                if (to_keys) to_keys[i] = kind.decode(from[i].key);
                to_payloads[i] = from[i].payload;
            }
        });
    }
    if constexpr (Kind::has_specials) {
        auto is_special = [kind](typename Kind::Raw x) { return kind.is_special(x); };
        if (sorted_keys && std::any_of(keys, keys + n, is_special)) restore_specials(kind, keys, sorted_keys, n);
    }
}

}  // namespace
}  // namespace pb

extern "C" {

void pb_sort(int64_t number, int64_t rows, int64_t n, const void* x, void* sorted, void* scratch) {
    using namespace pb;
    with_kind(number, [&](auto kind) {
        using Kind = decltype(kind);
        using Raw = typename Kind::Raw;
        for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
            constexpr size_t size = sizeof(Raw) == 2 ? 2 * sizeof(uint32_t) : sizeof(Raw);
            sort_row(kind, number, static_cast<const Raw*>(x) + r * n, static_cast<Raw*>(sorted) + r * n, n,
                           static_cast<char*>(scratch) + size_t(first * n) * size, chunks);
        });
    });
}

void pb_sort_pairs(int64_t number, int64_t size, int64_t rows, int64_t n, int64_t want_keys, const void* keys,
                   const void* payloads, void* sorted_keys, void* sorted_payloads, void* scratch) {
    using namespace pb;
    with_kind(number, [&](auto kind) {
        using Kind = decltype(kind);
        using Raw = typename Kind::Raw;
        auto run = [&](auto zero) {
            using Payload = decltype(zero);
            for_rows(rows, n, [&](int64_t r, int64_t first, Chunks chunks) {
                constexpr size_t bytes = 2 * sizeof(Element<typename Kind::Key, Payload>);
                sort_pairs_row<Kind, Payload>(kind,
                    static_cast<const Raw*>(keys) + r * n, static_cast<const Payload*>(payloads) + r * n,
                    want_keys ? static_cast<Raw*>(sorted_keys) + r * n : nullptr,
                    static_cast<Payload*>(sorted_payloads) + r * n, n,
                    static_cast<char*>(scratch) + size_t(first * n) * bytes, chunks);
            });
        };
        if (size == 4) run(uint32_t(0));
        else run(uint64_t(0));
    });
}

}  // extern "C"
