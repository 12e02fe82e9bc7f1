// Short transforms, as many at a time as a vector has lanes: each row has a lane of its own, so that no length is too short
// for vectors. Rows of a few numbers share a lane, and so do the columns of a small array. Part of tasks.h.

// to[k, r] = x[r, k] for the first n complex numbers of kMost<T> rows that are `step` numbers apart; imaginary parts times
// `sign`.
template <class T>
PB_INLINE void load_rows(const T* x, int64_t step, int64_t n, const Side<T>& to, T sign) {
    constexpr int L = kMost<T>, P = L / 2;
    if (n < P) {
        for (int64_t k = 0; k < n; ++k)
            PB_UNROLL for (int r = 0; r < L; ++r)
                to.re[k * L + r] = x[2 * (r * step + k)], to.im[k * L + r] = x[2 * (r * step + k) + 1] * sign;
        return;
    }
    each<P>(n, [&](int64_t k) PB_INLINED {
        V<T, L> low[P], high[P];
        PB_UNROLL for (int r = 0; r < P; ++r) {
            low[r] = load<T, L>(x + 2 * (r * step + k)), high[r] = load<T, L>(x + 2 * ((P + r) * step + k));
        }
        transpose<T, L, 2>(low), transpose<T, L, 2>(high);
        PB_UNROLL for (int i = 0; i < P; ++i) {
            store<T, L>(to.re + (k + i) * L, second<T, L, 0>(low[i], high[i]));
            store<T, L>(to.im + (k + i) * L, second<T, L, 1>(low[i], high[i]) * sign);
        }
    });
}

// out[r, k] = from[k, r], with real and imaginary parts times factors.
template <class T>
PB_INLINE void store_rows(const Side<T>& from, int64_t n, T* out, int64_t step, T re_scale, T im_scale) {
    constexpr int L = kMost<T>, P = L / 2;
    if (n < P) {
        PB_UNROLL for (int r = 0; r < L; ++r)
            for (int64_t k = 0; k < n; ++k) {
                out[2 * (r * step + k)] = scaled(from.re[k * L + r], re_scale);
                out[2 * (r * step + k) + 1] = scaled(from.im[k * L + r], im_scale);
            }
        return;
    }
    each<P>(n, [&](int64_t k) PB_INLINED {
        V<T, L> low[P], high[P];
        PB_UNROLL for (int i = 0; i < P; ++i) {
            const V<T, L> re = scaled(load<T, L>(from.re + (k + i) * L), re_scale);
            const V<T, L> im = scaled(load<T, L>(from.im + (k + i) * L), im_scale);
            low[i] = zip<T, L, 0>(re, im), high[i] = zip<T, L, 1>(re, im);
        }
        transpose<T, L, 2>(low), transpose<T, L, 2>(high);
        PB_UNROLL for (int r = 0; r < P; ++r) {
            store<T, L>(out + 2 * (r * step + k), low[r]), store<T, L>(out + 2 * ((P + r) * step + k), high[r]);
        }
    });
}

// to[k, r] = x[r, k] of real numbers; with Back, x[r, k] = scale to[k, r].
template <class T, bool Back>
PB_INLINE void real_rows_of(std::conditional_t<Back, T, const T>* x, int64_t n,
                            std::conditional_t<Back, const T, T>* to, T scale) {
    constexpr int L = kMost<T>;
    if (n < L) {
        PB_UNROLL for (int r = 0; r < L; ++r)
            for (int64_t k = 0; k < n; ++k) {
                if constexpr (Back) x[r * n + k] = scaled(to[k * L + r], scale);
                else to[k * L + r] = x[r * n + k];
            }
        return;
    }
    each<L>(n, [&](int64_t k) PB_INLINED {
        V<T, L> v[L];
        PB_UNROLL for (int i = 0; i < L; ++i) {
            if constexpr (Back) v[i] = scaled(load<T, L>(to + (k + i) * L), scale);
            else v[i] = load<T, L>(x + i * n + k);
        }
        transpose<T, L, 1>(v);
        PB_UNROLL for (int i = 0; i < L; ++i) {
            if constexpr (Back) store<T, L>(x + i * n + k, v[i]);
            else store<T, L>(to + (k + i) * L, v[i]);
        }
    });
}

template <class T>
PB_INLINE Z<V<T, kMost<T>>> lanes_at(const Side<T>& z, int64_t k) {
    return read<T, kMost<T>, true>(z, k * kMost<T>, 1);
}
template <class T>
PB_INLINE void put_lanes(const Side<T>& z, int64_t k, Z<V<T, kMost<T>>> value) {
    write<T, kMost<T>, true>(z, k * kMost<T>, value, 1, 1);
}

// to = X[k] = E[k] + w^k O[k] for k <= half, from z = E + i O, the transforms of even and odd elements. What k and half - k
// have in common is done once: E, O and w^half = -1 make X[half - k] = conj(E[k] - w^k O[k]).
template <class T>
void untangle_lanes(const Side<T>& z, int64_t half, const T* wr, const T* wi, const Side<T>& to) {
    using Lane = V<T, kMost<T>>;
    const Z<Lane> first = lanes_at(z, 0);
    put_lanes(to, 0, {first.re + first.im, Lane{}}), put_lanes(to, half, {first.re - first.im, Lane{}});
    constexpr T h = T(0.5);
    for (int64_t k = 1; k <= half / 2; ++k) {
        const Z<Lane> a = lanes_at(z, k), b = lanes_at(z, half - k);
        const Z<Lane> even{(a.re + b.re) * h, (a.im - b.im) * h}, odd{(a.im + b.im) * h, (b.re - a.re) * h};
        const Z<Lane> turned = times(odd, wr[k], wi[k]), low = even - turned;
        put_lanes(to, half - k, {low.re, -low.im}), put_lanes(to, k, even + turned);
    }
}

// to = conj 2 Z = conj 2 (E + i O), from z = X[k] = E[k] + w^k O[k] with E and O of real elements.
template <class T>
void tangle_lanes(const Side<T>& z, int64_t half, const T* wr, const T* wi, const Side<T>& to) {
    using Lane = V<T, kMost<T>>;
    const Lane first = lanes_at(z, 0).re, last = lanes_at(z, half).re;
    put_lanes(to, 0, {first + last, last - first});
    for (int64_t k = 1; k <= half / 2; ++k) {
        const Z<Lane> a = lanes_at(z, k), b = lanes_at(z, half - k);
        const Z<Lane> even{a.re + b.re, a.im - b.im};
        const Z<Lane> odd = times(Z<Lane>{a.re - b.re, a.im + b.im}, wr[k], -wi[k]);  // back, angles have the other sign
        put_lanes(to, half - k, {even.re + odd.im, even.im - odd.re});
        put_lanes(to, k, {even.re - odd.im, -(even.im + odd.re)});
    }
}

// function(number of the first) for `count` transforms that go `together`; the last ones may be done twice.
template <class Function>
PB_INLINE void each_of(int64_t count, int64_t together, const Function& function) {
    for (int64_t at = 0;;) {
        function(at);
        at += together;
        if (at >= count) return;
        if (at > count - together) at = count - together;
    }
}

// The complex transforms of task.count small arrays of `inner` columns each, `in_lane` of them in each lane.
template <class T>
void complex_batches(const Task<T>& task, Transform<T>& transform, int64_t inner, int64_t in_lane) {
    const int64_t size = task.plan[kLength] * inner, each_lane = in_lane * size;
    const T sign = task.backward ? T(-1) : T(1), im_scale = task.backward ? -task.scale : task.scale;
    const T* x = static_cast<const T*>(task.x);
    T* out = static_cast<T*>(task.out);
    const Side<T>& in = transform.planes(1);
    each_of(task.count, in_lane * kMost<T>, [&](int64_t at) {
        load_rows(x + 2 * at * size, each_lane, each_lane, in, sign);
        store_rows(transform.result(in, in_lane, 1), each_lane, out + 2 * at * size, each_lane, task.scale, im_scale);
    });
}

// The place of lanes number k.
template <class T>
PB_INLINE Side<T> lanes_from(const Side<T>& z, int64_t k) {
    return {z.re + k * kMost<T>, z.im + k * kMost<T>, z.stride};
}

// Transforms of task.count rows of n real numbers, `in_lane` of them in each lane.
template <class T>
void real_batches(const Task<T>& task, Transform<T>& transform, int64_t in_lane) {
    const int64_t n = task.inner, half = n / 2, many = in_lane * (half + 1);
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    const T* x = static_cast<const T*>(task.x);
    T* out = static_cast<T*>(task.out);
    const Side<T>& in = transform.planes(1);
    each_of(task.count, in_lane * kMost<T>, [&](int64_t row) {
        if (n % 2 == 0) {
            load_rows(x + row * n, in_lane * half, in_lane * half, in, T(1));
            const Side<T> done = transform.result(in, in_lane, 1), &to = transform.planes(done.re == in.re ? 0 : 1);
            for (int64_t j = 0; j < in_lane; ++j)
                untangle_lanes(lanes_from(done, j * half), half, wr, wi, lanes_from(to, j * (half + 1)));
            return store_rows(to, many, out + 2 * row * (half + 1), many, T(1), T(1));
        }
        real_rows_of<T, false>(x + row * n, in_lane * n, in.re, 1);
        std::memset(in.im, 0, size_t(in_lane * n * kMost<T>) * sizeof(T));
        const Side<T> done = transform.result(in, in_lane, 1);
        for (int64_t j = 1; j < in_lane; ++j)
            for (int64_t k = 0; k <= half; ++k) put_lanes(done, j * (half + 1) + k, lanes_at(done, j * n + k));
        store_rows(done, many, out + 2 * row * (half + 1), many, T(1), T(1));
    });
}

// Those back, to rows of n real numbers.
template <class T>
void real_batches_back(const Task<T>& task, Transform<T>& transform, int64_t in_lane) {
    const int64_t n = task.inner, half = n / 2, many = in_lane * (half + 1);
    const T *wr = task.table + task.plan[kCircle], *wi = wr + half + 1;
    const T* x = static_cast<const T*>(task.x);
    T* out = static_cast<T*>(task.out);
    const Side<T>&given = transform.planes(0), &in = transform.planes(1);
    each_of(task.count, in_lane * kMost<T>, [&](int64_t row) {
        load_rows(x + 2 * row * (half + 1), many, many, given, T(1));
        if (n % 2 == 0) {
            for (int64_t j = 0; j < in_lane; ++j)
                tangle_lanes(lanes_from(given, j * (half + 1)), half, wr, wi, lanes_from(in, j * half));
            const Side<T> done = transform.result(in, in_lane, 1);
            return store_rows(done, in_lane * half, out + row * n, in_lane * half, task.scale, -task.scale);
        }
        // The whole spectra's conjugates, from their halves; elements 0 are real.
        for (int64_t j = 0; j < in_lane; ++j) {
            const Side<T> from = lanes_from(given, j * (half + 1)), to = lanes_from(in, j * n);
            put_lanes(to, 0, {lanes_at(from, 0).re, V<T, kMost<T>>{}});
            for (int64_t k = 1; k <= half; ++k) {
                const Z<V<T, kMost<T>>> z = lanes_at(from, k);
                put_lanes(to, n - k, z), put_lanes(to, k, {z.re, -z.im});
            }
        }
        real_rows_of<T, true>(out + row * n, in_lane * n, transform.result(in, in_lane, 1).re, task.scale);
    });
}
