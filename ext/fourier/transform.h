// A transform of given length: its passes, or the convolution that a large prime makes of it; part of tasks.h.

// Elements behind each plane: planes that all began at a multiple of 4 KB would compete for the same cache sets.
constexpr int64_t kPadding = 272;
// No length has more: 2^14 is above the longest.
constexpr int kMostPasses = 14;

// Of up to `count` transforms at a time, one after the other, or of `width` neighbours.
template <class T>
class Transform {
  public:
    Transform(const Task<T>& task, int64_t count, int64_t width, T* room)
        : plan_(task.plan), table_(task.table), n_(task.plan[kLength]), work_(task.plan[kWork]), width_(width) {
        const int64_t size = work_ * width * count + kPadding;
        for (int k = 0; k < 2; ++k) planes_[k] = {room + 2 * k * size, room + (2 * k + 1) * size, width};
    }

    static int64_t room(const Task<T>& task, int64_t count, int64_t width) {
        return 4 * (task.plan[kWork] * width * count + kPadding);
    }

    // Where in the planes of one transform those of the next begin.
    int64_t step() const { return work_ * width_; }
    const Side<T>& planes(int k) const { return planes_[k]; }

    // The transform of `in` (complex numbers, times 1 or i's sign; or planes 1) to complex numbers `out`.
    void run(const Side<T>& in, const Side<T>& out, int64_t count, T in_sign, T re_scale, T im_scale) {
        count_ = count;
        if (plan_[kChirp] < 0) passes(in, planes_[0], planes_[1], &out, in_sign, re_scale, im_scale);
        else convolution(in, &out, in_sign, re_scale, im_scale);
    }

    // The planes that hold the transform.
    Side<T> result(const Side<T>& in, int64_t count, T in_sign) {
        count_ = count;
        if (plan_[kChirp] < 0) return passes(in, planes_[0], planes_[1], nullptr, in_sign, 1, 1);
        return convolution(in, nullptr, in_sign, 1, 1);
    }

    // From complex numbers, whose rows are `stride` apart, to planes, and back; the first `rows` numbers of each.
    void gather(const Side<T>& in, const Side<T>& planes, int64_t rows, T sign) const {
        rows_of(in, rows, n_ * width_, [&](int64_t from, int64_t to, auto lanes) PB_INLINED {
            constexpr int L = decltype(lanes)::value;
            write<T, L, true>(planes, to, read<T, L, false>(in, from, sign), 1, 1);
        });
    }
    void scatter(const Side<T>& planes, const Side<T>& out, int64_t rows, int64_t out_step, T re_scale, T im_scale) const {
        rows_of(out, rows, out_step, [&](int64_t to, int64_t from, auto lanes) PB_INLINED {
            constexpr int L = decltype(lanes)::value;
            write<T, L, false>(out, to, read<T, L, true>(planes, from, 1), re_scale, im_scale);
        });
    }

  private:
    // function(place in `side`, place in planes, lanes) for the first `rows` numbers of all transforms.
    template <class Function>
    PB_INLINE void rows_of(const Side<T>& side, int64_t rows, int64_t side_step, const Function& function) const {
        for (int64_t done = 0; done < count_; ++done) {
            const int64_t at = done * side_step, to = done * step();
            if (side.stride == width_)
                in_lanes<T>(rows * width_, [&](int64_t q, auto lanes) PB_INLINED { function(at + q, to + q, lanes); });
            else for (int64_t row = 0; row < rows; ++row)
                in_lanes<T>(width_, [&](int64_t q, auto lanes) PB_INLINED {
                    function(at + row * side.stride + q, to + row * width_ + q, lanes);
                });
        }
    }

    // The passes of transforms from one kind of memory to another: chosen once, run many times.
    struct Steps {
        int64_t count = 0;
        bool gathers = false, scatters = false;
        Side<T> result{};  // where it lies, if not in memory of the caller's
        struct {
            Kernel<T> kernel;
            Pass<T> pass;
        } of[kMostPasses];
    };

    // `in` to a, a to b, b to a, ...; to `out` in the end, if there is one. Gives where the result lies else.
    Side<T> passes(const Side<T>& in, const Side<T>& a, const Side<T>& b, const Side<T>* out, T in_sign, T re_scale,
                   T im_scale) {
        Steps& steps = steps_;
        const bool is_known =
            steps.count && prepared_for_ == a.re && in.is_planes() == in_planes_ && bool(out) == has_out_;
        if (!is_known) {
            prepare(in, a, b, out, in_sign, re_scale, im_scale);
            prepared_for_ = a.re, in_planes_ = in.is_planes(), has_out_ = bool(out);
        }
        if (steps.gathers) gather(in, b, work_, in_sign);
        else steps.of[0].pass.in.re = in.re, steps.of[0].pass.in.im = in.im;
        if (out && !steps.scatters) steps.of[steps.count - 1].pass.out.re = out->re;
        for (int64_t i = 0; i < steps.count; ++i) {
            steps.of[i].pass.count = count_;
            steps.of[i].kernel(steps.of[i].pass);
        }
        if (steps.scatters) scatter(steps.result, *out, work_, n_ * width_, re_scale, im_scale);
        return steps.result;
    }

    void prepare(const Side<T>& in, const Side<T>& a, const Side<T>& b, const Side<T>* out, T in_sign, T re_scale,
                 T im_scale) {
        const int64_t* step = plan_ + kFields;
        Steps& steps = steps_;
        steps.count = plan_[kPasses];
        steps.gathers = steps.scatters = false;
        int64_t s = 1;
        const Side<T>* from = &in;
        for (int64_t i = 0; i < steps.count; ++i, step += 3) {
            const int64_t radix = step[0], m = step[1], run = s * width_;
            const Side<T>& to = i % 2 ? b : a;
            const bool last = i == steps.count - 1 && out;
            Pass<T>& g = steps.of[i].pass;  // field by field, as it is read: copies of it would wait for the stores
            const auto put = [](Side<T>& side, const Side<T>& value) {
                side.re = value.re, side.im = value.im, side.stride = value.stride;
            };
            put(g.in, *from), put(g.out, last ? *out : to);
            g.m = m, g.wr = table_ + step[2], g.wi = g.wr + (radix - 1) * m;
            g.half = radix / 2, g.cr = g.wi + (radix - 1) * m, g.ci = g.cr + g.half * g.half;
            g.in_sign = in_sign, g.re_scale = re_scale, g.im_scale = im_scale;
            const bool together = g.in.stride == width_ && g.out.stride == width_;
            int lanes = lanes_of<T>(together ? run : width_), way = kNeighbours;
            if (together && m > 1 && run < kMost<T> && radix <= kLargestCodelet &&
                (run == 1 || ((run == 4 || run == 8) && g.in.is_planes()))) {
                const int more = lanes_of<T>(m * run);
                if (int64_t(1) << more > run) lanes = more, way = run == 1 ? kRows1 : run == 4 ? kRows4 : kRows8;
            }
            const bool direct = is_direct(int(radix)) && lanes > 0;
            if (!g.in.is_planes() && (!direct || !g.out.is_planes())) {
                steps.gathers = true;
                put(g.in, b);
            }
            if (last && !(direct && g.in.is_planes())) {
                steps.scatters = true;
                put(g.out, to);
            }
            if (g.in.stride == width_ && g.out.stride == width_) {
                g.width = run, g.s = 1;
                g.in.stride = g.out.stride = run;
                if (!together) lanes = lanes_of<T>(run);
            } else {
                g.width = width_, g.s = s;
            }
            g.in_step = g.in.is_planes() ? this->step() : n_ * width_;
            g.out_step = g.out.is_planes() ? this->step() : n_ * width_;
            steps.of[i].kernel = kernel_for<T>(radix, lanes, way, g.in.is_planes(), g.out.is_planes());
            from = &to;
            s *= radix;
        }
        steps.result.re = from->re, steps.result.im = from->im, steps.result.stride = from->stride;
    }

    // The transform as a convolution with a chirp: forward, times the chirp's transform, and back, which is forward with
    // real and imaginary parts in each other's place.
    Side<T> convolution(const Side<T>& in, const Side<T>* out, T in_sign, T re_scale, T im_scale) {
        const Side<T> a = planes_[0], b = planes_[1];
        const T *cr = table_ + plan_[kChirp], *ci = cr + n_, *kr = table_ + plan_[kSpectrum], *ki = kr + work_;
        if (!in.is_planes()) gather(in, b, n_, in_sign);
        times_table(b, n_, cr, ci);
        for (int64_t done = 0; done < count_; ++done)
            for (T* part : {b.re, b.im})
                std::memset(part + done * step() + n_ * width_, 0, size_t((work_ - n_) * width_) * sizeof(T));
        const Side<T> there = passes(b, a, b, nullptr, 1, 1, 1);
        times_table(there, work_, kr, ki);
        const auto exchanged = [](const Side<T>& x) { return Side<T>{x.im, x.re, x.stride}; };
        const bool in_a = there.re == a.re;
        const Side<T> back = passes(exchanged(there), exchanged(in_a ? b : a), exchanged(in_a ? a : b), nullptr, 1, 1, 1);
        const Side<T> done = exchanged(back);
        times_table(done, n_, cr, ci);
        if (out) scatter(done, *out, n_, n_ * width_, re_scale, im_scale);
        return done;
    }

    // z[row] *= re[row] + i im[row]
    void times_table(const Side<T>& z, int64_t rows, const T* re, const T* im) const {
        for (int64_t done = 0; done < count_; ++done) {
            const int64_t first = done * step();
            if (width_ == 1) {
                in_lanes_once<T>(rows, [&](int64_t q, auto lanes) PB_INLINED {
                    constexpr int L = decltype(lanes)::value;
                    const Z<V<T, L>> value = read<T, L, true>(z, first + q, 1);
                    write<T, L, true>(z, first + q, times(value, load<T, L>(re + q), load<T, L>(im + q)), 1, 1);
                });
                continue;
            }
            for (int64_t row = 0; row < rows; ++row)
                in_lanes_once<T>(width_, [&](int64_t q, auto lanes) PB_INLINED {
                    constexpr int L = decltype(lanes)::value;
                    const int64_t at = first + row * width_ + q;
                    write<T, L, true>(z, at, times(read<T, L, true>(z, at, 1), re[row], im[row]), 1, 1);
                });
        }
    }

    const int64_t* plan_;
    const T* table_;
    const int64_t n_, work_, width_;
    int64_t count_ = 0;
    Side<T> planes_[2];
    Steps steps_;
    const T* prepared_for_ = nullptr;
    bool in_planes_ = false, has_out_ = false;
};
