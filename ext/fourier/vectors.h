// Vectors of L numbers, as the compiler's own vector types; part of passes.h.
#if defined(__has_builtin)
#define PB_HAS_SHUFFLEVECTOR __has_builtin(__builtin_shufflevector)
#else
#define PB_HAS_SHUFFLEVECTOR 0
#endif
#if PB_HAS_SHUFFLEVECTOR
#define PB_SHUFFLE2(T, L, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PB_SHUFFLE2(T, L, a, b, ...) __builtin_shuffle(a, b, IntsOf<T, L>{__VA_ARGS__})
#endif
#define PB_INLINED __attribute__((always_inline))
#define PB_INLINE PB_INLINED inline
// Before a loop of known length over numbers in registers: it is written out before they are told apart.
#define PB_UNROLL _Pragma("GCC unroll 16")

template <class T, int L>
struct Lanes {
    typedef T Type __attribute__((vector_size(sizeof(T) * L)));
};
template <class T>
struct Lanes<T, 1> {
    using Type = T;
};
template <class T, int L>
using V = typename Lanes<T, L>::Type;

template <size_t Size>
struct Int;
template <>
struct Int<4> {
    using Type = int32_t;
};
template <>
struct Int<8> {
    using Type = int64_t;
};
template <class T, int L>
using IntsOf = V<typename Int<sizeof(T)>::Type, L>;

template <class T, int L>
PB_INLINE V<T, L> load(const T* p) {
    V<T, L> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class T, int L>
PB_INLINE void store(T* p, V<T, L> v) {
    __builtin_memcpy(p, &v, sizeof v);
}

// a0 b0 a1 b1 ..., of groups of S elements, the first half (High = 0) or the second.
template <class T, int L, int High, int S, int... I>
PB_INLINE V<T, L> zip(V<T, L> a, V<T, L> b, std::integer_sequence<int, I...>) {
    return PB_SHUFFLE2(T, L, a, b, (High * L / 2 + I / (2 * S) * S + I % S + (I / S % 2) * L)...);
}
template <class T, int L, int High, int S = 1>
PB_INLINE V<T, L> zip(V<T, L> a, V<T, L> b) {
    return zip<T, L, High, S>(a, b, std::make_integer_sequence<int, L>());
}

// Every second element of a and b, from number Odd on.
template <class T, int L, int Odd, int... I>
PB_INLINE V<T, L> second(V<T, L> a, V<T, L> b, std::integer_sequence<int, I...>) {
    return PB_SHUFFLE2(T, L, a, b, (2 * I + Odd)...);
}
template <class T, int L, int Odd>
PB_INLINE V<T, L> second(V<T, L> a, V<T, L> b) {
    return second<T, L, Odd>(a, b, std::make_integer_sequence<int, L>());
}

template <class T, int L, int... I>
PB_INLINE V<T, L> reversed(V<T, L> a, std::integer_sequence<int, I...>) {
    return PB_SHUFFLE2(T, L, a, a, (L - 1 - I)...);
}
template <class T, int L>
PB_INLINE V<T, L> reversed(V<T, L> a) {
    if constexpr (L == 1) return a;
    else return reversed<T, L>(a, std::make_integer_sequence<int, L>());
}

// Each of the L / S numbers at p S times. All L numbers there are read: a table has as many behind its end.
template <class T, int L, int S, int... I>
PB_INLINE V<T, L> spread(const T* p, std::integer_sequence<int, I...>) {
    const V<T, L> a = load<T, L>(p);
    return PB_SHUFFLE2(T, L, a, a, (I / S)...);
}
template <class T, int L, int S>
PB_INLINE V<T, L> spread(const T* p) {
    return spread<T, L, S>(p, std::make_integer_sequence<int, L>());
}

// The vectors v[0], ..., v[L / S - 1] as rows of groups of S elements, transposed: L / S vectors again.
template <class T, int L, int S>
PB_INLINE void transpose(V<T, L>* v) {
    constexpr int G = L / S;
    PB_UNROLL for (int done = 1; done < G; done *= 2) {
        V<T, L> next[G];
        PB_UNROLL for (int i = 0; i < G / 2; ++i) {
            next[2 * i] = zip<T, L, 0, S>(v[i], v[i + G / 2]);
            next[2 * i + 1] = zip<T, L, 1, S>(v[i], v[i + G / 2]);
        }
        PB_UNROLL for (int i = 0; i < G; ++i) v[i] = next[i];
    }
}

// Groups of S neighbouring elements of v go to out, out + step, ....
template <class T, int L, int S, int G, int... I>
PB_INLINE void store_group(T* out, V<T, L> v, std::integer_sequence<int, I...>) {
#if PB_HAS_SHUFFLEVECTOR
    store<T, S>(out, __builtin_shufflevector(v, v, (G * S + I)...));
#else
    __builtin_memcpy(out, reinterpret_cast<const char*>(&v) + G * S * sizeof(T), S * sizeof(T));
#endif
}
template <class T, int L, int S, int... G>
PB_INLINE void store_groups(T* out, int64_t step, V<T, L> v, std::integer_sequence<int, G...>) {
    (store_group<T, L, S, G>(out + G * step, v, std::make_integer_sequence<int, S>()), ...);
}
template <class T, int L, int S>
PB_INLINE void store_groups(T* out, int64_t step, V<T, L> v) {
    store_groups<T, L, S>(out, step, v, std::make_integer_sequence<int, L / S>());
}

// Vectors of L numbers, of which there are P, a power of two, with their elements in the order of out[l P + j] = v[j][l].
template <class T, int L, int P>
PB_INLINE void interleave(V<T, L>* v) {
    PB_UNROLL for (int done = 1; done < P; done *= 2) {
        V<T, L> next[P];
        PB_UNROLL for (int i = 0; i < P / 2; ++i) {
            next[2 * i] = zip<T, L, 0>(v[i], v[i + P / 2]);
            next[2 * i + 1] = zip<T, L, 1>(v[i], v[i + P / 2]);
        }
        PB_UNROLL for (int i = 0; i < P; ++i) v[i] = next[i];
    }
}

constexpr int power_above(int n) { return n <= 2 ? n : 2 * power_above((n + 1) / 2); }

// The vectors v[0], ..., v[R - 1] with their groups of S elements side by side: the first of each, then the second. Up to
// L elements behind the last may be overwritten.
template <class T, int L, int S, int R>
PB_INLINE void store_side_by_side(T* out, const V<T, L>* v) {
    constexpr int P = power_above(R), G = L / S;
    if constexpr (L == S) {
        PB_UNROLL for (int j = 0; j < R; ++j) store<T, L>(out + j * L, v[j]);
    } else if constexpr (R % G == 0) {
        PB_UNROLL for (int j = 0; j < R; j += G) {
            V<T, L> part[G];
            PB_UNROLL for (int i = 0; i < G; ++i) part[i] = v[j + i];
            transpose<T, L, S>(part);
            PB_UNROLL for (int i = 0; i < G; ++i) store<T, L>(out + (i * R + j) * S, part[i]);
        }
    } else if constexpr (S == 1 && P <= L) {
        V<T, L> part[P];
        PB_UNROLL for (int i = 0; i < P; ++i) part[i] = v[i < R ? i : R - 1];
        interleave<T, L, P>(part);
        PB_UNROLL for (int i = 0; i < P; ++i) {
            if constexpr (P == R) store<T, L>(out + i * L, part[i]);
            else store_groups<T, L, P>(out + i * (L / P) * R, R, part[i]);  // each over the end of the one before
        }
    } else if constexpr (R % 2 == 0) {
        V<T, L> low[R / 2], high[R / 2];
        PB_UNROLL for (int i = 0; i < R / 2; ++i) {
            low[i] = zip<T, L, 0, S>(v[i], v[i + R / 2]);
            high[i] = zip<T, L, 1, S>(v[i], v[i + R / 2]);
        }
        store_side_by_side<T, L, S, R / 2>(out, low);
        store_side_by_side<T, L, S, R / 2>(out + L * R / 2, high);
    } else if constexpr (S == 1) {
        PB_UNROLL for (int l = 0; l < L; ++l)
            PB_UNROLL for (int j = 0; j < R; ++j) out[l * R + j] = v[j][l];
    } else {
        PB_UNROLL for (int j = 0; j < R; ++j) store_groups<T, L, S>(out + j * S, R * S, v[j]);
    }
}
