// Reductions of plans along one axis, in the order of compiled code (loops/emit/vector_loops.py says which that is): lanes
// along a contiguous axis, or each column by itself. NumPy's loop adds pairwise along the last axis alone, and was called
// for each row: the middle axis of (20, 20, 20) float32 took 4.2 us, now 1.2; the largest of rows of 64 9.4 us, now 1.2.
#include <complex>
#include <concepts>
#include <cstring>

#include "cpu_features.h"
#include "programs/plan_loops.h"
#include "programs/plan_vectors.h"
#include "programs/sum_order.h"

#if defined(__x86_64__)
#define PB_LEVEL(features) __attribute__((target(features)))
#else
#define PB_LEVEL(features)
#endif

namespace pb {
namespace reductions {
namespace {

constexpr npy_intp kAccumulators = 4;  // partial sums of a row that is only added (loops/emit/lanes.py)

template <typename T>
struct Part {
    using Number = T;
    static constexpr int kCount = 1;
};
template <typename T>
struct Part<std::complex<T>> {
    using Number = T;
    static constexpr int kCount = 2;
};

struct Add {
    static constexpr double kNeutral = -0.0;  // + x is x, whatever the sign of a zero
    static constexpr double kInit = 0.0;
    static constexpr bool kCompensates = true, kRepeats = false;
    template <typename V>
    PB_INLINE static void take(V& x, const V& y) {
        x += y;
    }
};

struct Multiply {
    static constexpr double kNeutral = 1.0, kInit = 1.0;
    static constexpr bool kCompensates = false, kRepeats = false;
    template <typename V>
    PB_INLINE static void take(V& x, const V& y) {
        x *= y;
    }
};

// The larger (or smaller) one; NaN if there is one. Of two zeros either.
template <bool largest>
struct Extreme {
    static constexpr bool kCompensates = false, kRepeats = true;
    template <typename V>
    PB_INLINE static void take(V& x, const V& y) {
        const auto stays = (largest ? x > y : x < y) | (x != x);
        x = stays ? x : y;
    }
};

// total + x, exactly: what rounding loses comes to `error` (two-sum; Knuth, The Art of Computer Programming 2).
template <typename V>
PB_INLINE void add_exactly(V& total, const V& x, V& error) {
    const V sum = total + x;
    const V own = sum - total;
    error += (total - (sum - own)) + (x - own);
    total = sum;
}

PB_INLINE float settled(float total, float error) { return total + (error == error ? error : 0.0f); }
PB_INLINE double settled(double total, double error) { return total + (error == error ? error : 0.0); }
template <typename S>
PB_INLINE std::complex<S> settled(std::complex<S> total, std::complex<S> error) {
    return {settled(total.real(), error.real()), settled(total.imag(), error.imag())};
}
template <typename V>
PB_INLINE V settled(V total, V error) {
    return total + (error == error ? error : V{});
}

// Lanes with each other, the upper half with the lower one until one is left.
template <typename Op, typename S, int count, int parts>
PB_INLINE void across(const Vector<S, count>& v, S* out) {
    if constexpr (count == parts) {
        for (int k = 0; k < parts; ++k) {
            S value = v[k];
            if constexpr (requires { Op::kInit; }) Op::take(value, S(Op::kInit));
            out[k] = value;
        }
    } else if constexpr (count == 2) {
        S low = v[0];
        Op::take(low, v[1]);
        across<Op, S, 1, 1>(Vector<S, 1>{low}, out);
    } else {
        S lanes[count];
        store(reinterpret_cast<char*>(lanes), v);
        auto low = load<Vector<S, count / 2>>(reinterpret_cast<const char*>(lanes));
        Op::take(low, load<Vector<S, count / 2>>(reinterpret_cast<const char*>(lanes + count / 2)));
        across<Op, S, count / 2, parts>(low, out);
    }
}

// The reduction of n neighbours by so many lanes; `parts` numbers make an element. `is_chunk`: as where compiled code does
// not know n beforehand.
template <typename Op, typename S, int lanes, int parts>
PB_INLINE void reduce_row(const char* x, npy_intp n, bool is_chunk, S* out) {
    constexpr int kNumbers = lanes * parts;
    using V = Vector<S, kNumbers>;
    constexpr npy_intp kSize = parts * sizeof(S), kStep = lanes * kAccumulators;
    constexpr npy_intp kLong = kSumBlock * kStep * (kStep < kSumFew ? 1 : 2);
    constexpr bool kKeeps = Op::kCompensates && std::floating_point<S>;
    S neutral[kNumbers];
    for (S& each : neutral) {
        if constexpr (requires { Op::kNeutral; }) each = S(Op::kNeutral);
        else each = load<S>(x);  // of the smallest or largest: any element
    }
    const V nothing = load<V>(reinterpret_cast<const char*>(neutral));
    npy_intp i = 0;
    V partial;
    const auto four = [&](npy_intp end) __attribute__((always_inline)) {
        V a = nothing, b = nothing, c = nothing, d = nothing;
        for (; i < end; i += kStep) {
            const char* at = x + i * kSize;
            Op::take(a, load<V>(at));
            Op::take(b, load<V>(at + sizeof(V)));
            Op::take(c, load<V>(at + 2 * sizeof(V)));
            Op::take(d, load<V>(at + 3 * sizeof(V)));
        }
        Op::take(a, b);
        Op::take(c, d);
        Op::take(a, c);
        partial = a;
    };
    V total = nothing, error{};
    const bool is_long = kKeeps && (is_chunk || n >= kLong);
    if constexpr (kKeeps) {
        if (is_long)
            for (const npy_intp end = n - n % (kSumBlock * kStep); i < end;) {
                four(i + kSumBlock * kStep);
                add_exactly(total, partial, error);
            }
    }
    four(n - n % kStep);
    for (const npy_intp end = n - n % lanes; i < end; i += lanes) Op::take(partial, load<V>(x + i * kSize));
    if (Op::kRepeats && i < n && n >= lanes) {  // elements may be taken twice
        Op::take(partial, load<V>(x + (n - lanes) * kSize));
    } else if (i < n) {  // what is left, in shorter vectors, each of which takes what those behind it gave
        S rest[kNumbers];
        memcpy(rest, neutral, sizeof rest);
        npy_intp end = n;
        if (is_chunk)
            for (; i < n; ++i)
                for (int k = 0; k < parts; ++k) Op::take(rest[k], load<S>(x + i * kSize + k * npy_intp(sizeof(S))));
        for (int width = 1; width < lanes; width *= 2) {
            if (!((n - i) & width)) continue;
            const char* at = x + (end -= width) * kSize;
            for (int k = 0; k < width * parts; ++k) {
                S value = load<S>(at + k * npy_intp(sizeof(S)));
                Op::take(value, rest[k]);
                rest[k] = value;
            }
        }
        Op::take(partial, load<V>(reinterpret_cast<const char*>(rest)));
    }
    if constexpr (kKeeps) {
        if (is_long) {
            add_exactly(total, partial, error);
            S totals[kNumbers], errors[kNumbers];
            store(reinterpret_cast<char*>(totals), total);
            store(reinterpret_cast<char*>(errors), error);
            for (int half = kNumbers / 2; half >= parts; half /= 2)
                for (int k = 0; k < half; ++k) {
                    add_exactly(totals[k], totals[half + k], errors[k]);
                    errors[k] += errors[half + k];
                }
            for (int k = 0; k < parts; ++k) out[k] = settled(totals[k] + S(0), errors[k]);
            return;
        }
    }
    across<Op, S, kNumbers, parts>(partial, out);
}

// dimensions: of rows, of a row, whether it is a chunk; strides: x's from row to row, out's.
template <typename Op, typename S, int lanes, int parts>
PB_INLINE int each_row(char* const* data, const npy_intp* dimensions, const npy_intp* strides) {
    for (npy_intp row = 0; row < dimensions[0]; ++row)
        reduce_row<Op, S, lanes, parts>(data[0] + row * strides[0], dimensions[1], dimensions[2],
                                        reinterpret_cast<S*>(data[1] + row * strides[1]));
    return 0;
}

template <typename Op, typename S, int lanes, int parts>
int rows(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_row<Op, S, lanes, parts>(data, dimensions, strides);
}

template <typename Op, typename S, int lanes, int parts>
PB_LEVEL("avx2")
int rows_of_level_3(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_row<Op, S, lanes, parts>(data, dimensions, strides);
}

template <typename Op, typename S, int lanes, int parts>
PB_LEVEL("avx512f,avx512bw,avx512dq,avx512vl")
int rows_of_level_4(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_row<Op, S, lanes, parts>(data, dimensions, strides);
}

// Vectors side by side, so that a core need not wait for one sum after the other.
template <typename S, int bytes>
struct Line {
    Vector<S, bytes / sizeof(S)> v[4];
};

template <typename Op, typename V>
PB_INLINE void take(V& x, const V& y) {
    Op::take(x, y);
}

template <typename Op, typename S, int bytes>
PB_INLINE void take(Line<S, bytes>& x, const Line<S, bytes>& y) {
    for (int k = 0; k < 4; ++k) Op::take(x.v[k], y.v[k]);
}

template <typename V>
PB_INLINE void keep(V& total, const V& x, V& error) {
    add_exactly(total, x, error);
}

template <typename S, int bytes>
PB_INLINE void keep(Line<S, bytes>& total, const Line<S, bytes>& x, Line<S, bytes>& error) {
    for (int k = 0; k < 4; ++k) add_exactly(total.v[k], x.v[k], error.v[k]);
}

template <typename V>
PB_INLINE V end_of(const V& total, const V& error) {
    return settled(total, error);
}

template <typename S, int bytes>
PB_INLINE Line<S, bytes> end_of(const Line<S, bytes>& total, const Line<S, bytes>& error) {
    Line<S, bytes> result;
    for (int k = 0; k < 4; ++k) result.v[k] = settled(total.v[k], error.v[k]);
    return result;
}

// The elements at x, x + step, ..., each a number or several neighbours, taken one by one.
template <typename Op, typename V>
PB_INLINE V one_by_one(const char* x, npy_intp n, npy_intp step) {
    V result = load<V>(x);
    for (npy_intp i = 1; i < n; ++i) take<Op>(result, load<V>(x += step));
    return result;
}

template <typename V>
PB_INLINE V chains(const char* x, npy_intp n, npy_intp step) {
    V result = one_by_one<Add, V>(x, n < kSumChain ? n : kSumChain, step);
    for (npy_intp i = kSumChain; i < n; i += kSumChain)
        take<Add>(result, one_by_one<Add, V>(x + i * step, n - i < kSumChain ? n - i : kSumChain, step));
    return result;
}

template <typename Op, typename V, bool keeps>
PB_INLINE V down(const char* x, npy_intp n, npy_intp step, const V& init) {
    if constexpr (keeps) {
        V total = init, error{};
        if (n <= kSumSteps) {
            take<Add>(total, chains<V>(x, n, step));
            return total;
        }
        for (npy_intp i = 0; i < n; i += kSumSteps)
            keep(total, chains<V>(x + i * step, n - i < kSumSteps ? n - i : kSumSteps, step), error);
        return end_of(total, error);
    } else {
        V result = one_by_one<Op, V>(x, n, step);
        if constexpr (Op::kCompensates) take<Op>(result, init);
        return result;
    }
}

// out[j] = the reduction over i of x[i, j]. dimensions: of j, of i; strides: x's along j, out's, x's along i.
template <typename Op, typename T, int bytes>
PB_INLINE int each_column(char* const* data, const npy_intp* dimensions, const npy_intp* strides) {
    using S = typename Part<T>::Number;
    constexpr bool kKeeps = Op::kCompensates && !std::integral<T>;
    constexpr npy_intp kLanes = bytes / sizeof(T), kLeast = 16 / sizeof(T);
    const char* x = data[0];
    char* out = data[1];
    const npy_intp columns = dimensions[0], n = dimensions[1];
    const npy_intp column_step = strides[0], out_step = strides[1], row_step = strides[2];
    npy_intp j = 0;
    const auto vectors = [&](auto zero, npy_intp lanes) __attribute__((always_inline)) {
        using V = decltype(zero);
        for (; j + lanes <= columns; j += lanes)
            store(out + j * out_step, down<Op, V, kKeeps>(x + j * column_step, n, row_step, zero));
        if (j < columns && columns >= lanes) {  // the last vector begins among columns that are done
            store(out + (columns - lanes) * out_step,
                  down<Op, V, kKeeps>(x + (columns - lanes) * column_step, n, row_step, zero));
            j = columns;
        }
    };
    if (Op::kRepeats && column_step == sizeof(T) && out_step == sizeof(T) && columns >= 16 * kLanes) {  // row by row
        using V = Vector<S, bytes / sizeof(S)>;
        memcpy(out, x, size_t(columns) * sizeof(T));
        for (npy_intp i = 1; i < n; ++i)
            for (npy_intp k = 0; k < columns; k += kLanes) {
                const npy_intp at = (k + kLanes <= columns ? k : columns - kLanes) * npy_intp(sizeof(T));
                V so_far = load<V>(out + at);
                Op::take(so_far, load<V>(x + i * row_step + at));
                store(out + at, so_far);
            }
        return 0;
    }
    if (column_step == sizeof(T) && out_step == sizeof(T)) {
        for (; j + 4 * kLanes <= columns; j += 4 * kLanes)
            store(out + j * out_step, down<Op, Line<S, bytes>, kKeeps>(x + j * column_step, n, row_step, Line<S, bytes>{}));
        vectors(Vector<S, bytes / sizeof(S)>{}, kLanes);
        if constexpr (kLanes > kLeast) vectors(Vector<S, 16 / sizeof(S)>{}, kLeast);
    }
    if (!kKeeps || n <= kSumChain)  // columns side by side, so that a core need not wait for one sum after the other
        for (; j + 4 <= columns; j += 4) {
            const char* at = x + j * column_step;
            T a = load<T>(at), b = load<T>(at + column_step);
            T c = load<T>(at + 2 * column_step), d = load<T>(at + 3 * column_step);
            for (npy_intp i = 1; i < n; ++i) {
                at += row_step;
                Op::take(a, load<T>(at)), Op::take(b, load<T>(at + column_step));
                Op::take(c, load<T>(at + 2 * column_step)), Op::take(d, load<T>(at + 3 * column_step));
            }
            if constexpr (Op::kCompensates) a += T(0), b += T(0), c += T(0), d += T(0);
            char* to = out + j * out_step;
            store(to, a), store(to + out_step, b), store(to + 2 * out_step, c), store(to + 3 * out_step, d);
        }
    for (; j < columns; ++j) store(out + j * out_step, down<Op, T, kKeeps>(x + j * column_step, n, row_step, T(0)));
    return 0;
}

template <typename Op, typename T, int bytes>
int columns(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_column<Op, T, bytes>(data, dimensions, strides);
}

template <typename Op, typename T, int bytes>
PB_LEVEL("avx2")
int columns_of_level_3(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_column<Op, T, bytes>(data, dimensions, strides);
}

template <typename Op, typename T, int bytes>
PB_LEVEL("avx512f,avx512bw,avx512dq,avx512vl")
int columns_of_level_4(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    return each_column<Op, T, bytes>(data, dimensions, strides);
}

// The widest vectors serve where nothing is compared: GCC 12 takes apart what it blends in them.
template <typename Op, typename T>
StridedLoop* loop_of(int bytes) {
    using S = typename Part<T>::Number;
    constexpr int kParts = Part<T>::kCount;
    const int level = cpu_features.level;
    if (bytes == 0) {
        if constexpr (!Op::kRepeats)
            if (level >= 4) return columns_of_level_4<Op, T, 64>;
        return level >= 3 ? columns_of_level_3<Op, T, 32> : columns<Op, T, 16>;
    }
    if constexpr (Op::kRepeats) return level >= 3 ? rows_of_level_3<Op, S, 32 / sizeof(S), 1> : rows<Op, S, 16 / sizeof(S), 1>;
    else if (bytes == 64) return level >= 4 ? rows_of_level_4<Op, S, 64 / sizeof(S), kParts> : nullptr;
    else if (bytes == 32) return level >= 3 ? rows_of_level_3<Op, S, 32 / sizeof(S), kParts> : nullptr;
    else return rows<Op, S, 16 / sizeof(S), kParts>;
}

template <typename Op>
StridedLoop* real_loop(int type, int bytes) {
    switch (type) {
        case NPY_FLOAT: return loop_of<Op, float>(bytes);
        case NPY_DOUBLE: return loop_of<Op, double>(bytes);
        default: return nullptr;
    }
}

template <typename Op>
StridedLoop* ordered_loop(int type, int bytes) {
    switch (type) {
        case NPY_INT: return loop_of<Op, int32_t>(bytes);
        case NPY_UINT: return loop_of<Op, uint32_t>(bytes);
        case NPY_LONG: return loop_of<Op, int64_t>(bytes);
        case NPY_ULONG: return loop_of<Op, uint64_t>(bytes);
        default: return real_loop<Op>(type, bytes);
    }
}

}  // namespace
}  // namespace reductions

StridedLoop* reduction_loop(const char* name, int type, int bytes) {
    using namespace reductions;
    if (!strcmp(name, "max")) return ordered_loop<Extreme<true>>(type, bytes);
    if (!strcmp(name, "min")) return ordered_loop<Extreme<false>>(type, bytes);
    if (!strcmp(name, "mul")) return real_loop<Multiply>(type, bytes);
    if (strcmp(name, "add")) return nullptr;
    switch (type) {  // integers wrap around, so their sign makes no difference
        case NPY_INT:
        case NPY_UINT: return loop_of<Add, uint32_t>(bytes);
        case NPY_LONG:
        case NPY_ULONG: return loop_of<Add, uint64_t>(bytes);
        case NPY_CFLOAT: return loop_of<Add, std::complex<float>>(bytes);
        case NPY_CDOUBLE: return loop_of<Add, std::complex<double>>(bytes);
        default: return real_loop<Add>(type, bytes);
    }
}

}  // namespace pb
