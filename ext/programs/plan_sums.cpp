// Sums of plans: columns as vectors, rows in lines, halves added as pairwise sums are. NumPy's loop adds pairwise along
// the last axis alone, and was called for each row: the middle axis of (20, 20, 20) float32 took 4.2 us, now 1.2.
#include <complex>
#include <cstring>
#include <type_traits>

#include "programs/plan_loops.h"

namespace pb {
namespace {

// Sums of two halves, down to rows that are added one after the other: as accurate as pairwise sums.
constexpr npy_intp kOneByOne = 16;

template <typename V>
inline V load(const char* from) {
    V v;
    memcpy(&v, from, sizeof v);
    return v;
}

template <typename V>
inline void store(char* to, const V& v) {
    memcpy(to, &v, sizeof v);
}

template <typename T>
struct Part {
    using Number = T;
};
template <typename T>
struct Part<std::complex<T>> {
    using Number = T;
};

// Neighbours in a vector that every x86-64 has, and four such vectors.
template <typename T>
using Vector [[gnu::vector_size(16)]] = typename Part<T>::Number;
template <typename T>
struct Line {
    Vector<T> a, b, c, d;
    void operator+=(const Line& other) { a += other.a, b += other.b, c += other.c, d += other.d; }
};

template <typename V>
inline void add(V& sum, const char* x) {
    sum += load<V>(x);
}

template <typename T>
inline void add(Line<T>& sum, const char* x) {  // vector by vector: as a whole it would go through memory
    using V = Vector<T>;
    sum.a += load<V>(x), sum.b += load<V>(x + sizeof(V));
    sum.c += load<V>(x + 2 * sizeof(V)), sum.d += load<V>(x + 3 * sizeof(V));
}

// total = the elements at x, x + step, ..., each a number or a vector of neighbours.
template <typename V>
inline void add_one_by_one(const char* x, npy_intp n, npy_intp step, V& total) {
    V sum = load<V>(x);
    for (npy_intp i = 1; i < n; ++i) add(sum, x += step);
    total = sum;
}

template <typename V>
void add_halves(const char* x, npy_intp n, npy_intp step, V& total) {
    if (n <= kOneByOne) return add_one_by_one(x, n, step, total);
    V rest;
    add_halves(x, n / 2, step, total);
    add_halves(x + n / 2 * step, n - n / 2, step, rest);
    total += rest;
}

template <typename V>
inline void add_up(const char* x, npy_intp n, npy_intp step, V& total) {
    if (n <= kOneByOne) add_one_by_one(x, n, step, total);
    else add_halves(x, n, step, total);
}

// Neighbours that are summed together, in lines, then in vectors, then one by one.
template <typename T>
inline T add_up_neighbours(const char* x, npy_intp n) {
    constexpr npy_intp kLine = sizeof(Line<T>) / sizeof(T), kLanes = sizeof(Vector<T>) / sizeof(T);
    T total(0);  // as sums that begin with zero: -0 becomes 0
    if (n >= kLanes) {
        Vector<T> lanes{};
        if (n >= kLine) {
            Line<T> line;
            add_up(x, n / kLine, npy_intp(sizeof line), line);
            lanes = (line.a + line.b) + (line.c + line.d);
            x += n / kLine * sizeof line;
            n %= kLine;
        }
        for (; n >= kLanes; n -= kLanes, x += sizeof lanes) lanes += load<Vector<T>>(x);
        T parts[kLanes];
        memcpy(static_cast<void*>(parts), &lanes, sizeof lanes);
        for (const T part : parts) total += part;
    }
    for (; n > 0; --n, x += sizeof(T)) total += load<T>(x);
    return total;
}

// out[j] = the sum over i of x[i, j]. dimensions: of j, of i; strides: x's along j, out's, x's along i.
template <typename T>
int sum(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const char* x = data[0];
    char* out = data[1];
    const npy_intp columns = dimensions[0], rows = dimensions[1];
    const npy_intp column_step = strides[0], out_step = strides[1], row_step = strides[2];
    npy_intp j = 0;
    const auto add_columns = [&]<typename Lanes>(Lanes zero) {
        for (; j + npy_intp(sizeof(Lanes) / sizeof(T)) <= columns; j += npy_intp(sizeof(Lanes) / sizeof(T))) {
            Lanes total;
            add_up(x + j * column_step, rows, row_step, total);
            total += zero;
            store(out + j * out_step, total);
        }
    };
    if (row_step == sizeof(T)) {
        for (; j < columns; ++j) store(out + j * out_step, add_up_neighbours<T>(x + j * column_step, rows));
    } else if (column_step == sizeof(T) && out_step == sizeof(T)) {
        add_columns(Line<T>{});
        add_columns(Vector<T>{});
        constexpr npy_intp kLanes = sizeof(Vector<T>) / sizeof(T);
        if (j < columns && columns >= kLanes) {  // the last vector begins among columns that are done
            j = columns - kLanes;
            add_columns(Vector<T>{});
        }
    }
    add_columns(T(0));
    return 0;
}

}  // namespace

StridedLoop* sum_loop(int type) {
    switch (type) {  // integers wrap around, so their sign makes no difference
        case NPY_INT:
        case NPY_UINT: return sum<uint32_t>;
        case NPY_LONG:
        case NPY_ULONG: return sum<uint64_t>;
        case NPY_FLOAT: return sum<float>;
        case NPY_DOUBLE: return sum<double>;
        case NPY_CFLOAT: return sum<std::complex<float>>;
        case NPY_CDOUBLE: return sum<std::complex<double>>;
        default: return nullptr;
    }
}

}  // namespace pb
