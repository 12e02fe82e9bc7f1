# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

from pullback.lax import collectives as collectives
from pullback.lax import control as control
from pullback.lax import elementwise as elementwise
from pullback.lax import fourier as fourier
from pullback.lax import generators as generators
from pullback.lax import linalg as linalg
from pullback.lax import movement as movement
from pullback.lax import ordering as ordering
from pullback.lax import products as products
from pullback.lax import records as records
from pullback.lax import reductions as reductions
from pullback.lax.records.families import AccuracyMode as AccuracyMode
from pullback.lax.products.conv_shapes import ConvDimensionNumbers as ConvDimensionNumbers
from pullback.lax.products.dot import DotAlgorithm as DotAlgorithm
from pullback.lax.products.dot import DotAlgorithmPreset as DotAlgorithmPreset

def DotDimensionNumbers(*args: Any, **kwargs: Any) -> Any: ...

from pullback.lax.fourier.fft import FftType as FftType
from pullback.lax.movement.gather import GatherDimensionNumbers as GatherDimensionNumbers
from pullback.lax.movement.gather import GatherScatterMode as GatherScatterMode
from pullback.lax.products.dot import Precision as Precision
from pullback.lax.products.dot import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from pullback.lax.collectives.compatibility import RandomAlgorithm as RandomAlgorithm
from pullback.lax.elementwise.arithmetic import RoundingMethod as RoundingMethod
from pullback.lax.movement.scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from pullback.lax.records.families import Tolerance as Tolerance

def abs(x: Any) -> Array: ...

abs_p: Any

def acos(x: Any) -> Array: ...

acos_p: Any

def acosh(x: Any) -> Array: ...

acosh_p: Any

def add(x: Any, y: Any) -> Array: ...
def add_any(x: Any, y: Any) -> Array: ...

add_any_p: Any
add_p: Any

def after_all(*operands: Any) -> Any: ...
def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = ..., axis: Any = ..., tiled: Any = ..., to: Any = ...
) -> Any: ...

all_gather_p: Any

def all_to_all(
    x: Any, axis_name: Any, split_axis: Any, concat_axis: Any, *, axis_index_groups: Any = ..., tiled: Any = ...
) -> Any: ...

all_to_all_p: Any
and_p: Any

def approx_max_k(
    operand: Any,
    k: Any,
    reduction_dimension: Any = ...,
    recall_target: Any = ...,
    reduction_input_size_override: Any = ...,
    aggregate_to_topk: Any = ...,
) -> list[Array]: ...
def approx_min_k(
    operand: Any,
    k: Any,
    reduction_dimension: Any = ...,
    recall_target: Any = ...,
    reduction_input_size_override: Any = ...,
    aggregate_to_topk: Any = ...,
) -> list[Array]: ...

approx_top_k_p: Any

def argmax(operand: Any, axis: Any, index_dtype: Any) -> Array: ...

argmax_p: Any

def argmin(operand: Any, axis: Any, index_dtype: Any) -> Array: ...

argmin_p: Any

def asin(x: Any) -> Array: ...

asin_p: Any

def asinh(x: Any) -> Array: ...

asinh_p: Any

def associative_scan(fn: Callable[[Any, Any], Any], elems: T, reverse: bool = ..., axis: int = ...) -> T: ...
def atan(x: Any) -> Array: ...
def atan2(x: Any, y: Any) -> Array: ...

atan2_p: Any
atan_p: Any

def atanh(x: Any) -> Array: ...

atanh_p: Any

def axis_index(axis_name: Any) -> Array: ...

axis_index_p: Any

def axis_size(axis_name: Any) -> int: ...
def batch_matmul(lhs: Any, rhs: Any, precision: Any = ...) -> Array: ...
def bessel_i0e(x: Any) -> Array: ...

bessel_i0e_p: Any

def bessel_i1e(x: Any) -> Array: ...

bessel_i1e_p: Any

def betainc(a: Any, b: Any, x: Any) -> Array: ...
def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array: ...

bitcast_convert_type_p: Any

def bitwise_and(x: Any, y: Any) -> Array: ...
def bitwise_not(x: Any) -> Array: ...
def bitwise_or(x: Any, y: Any) -> Array: ...
def bitwise_xor(x: Any, y: Any) -> Array: ...
def broadcast(operand: Any, sizes: Any, *, out_sharding: Any = ...) -> Array: ...
def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Any, *, out_sharding: Any = ...) -> Array: ...

broadcast_in_dim_p: Any

def broadcast_like(arr: Any, like_arr: Any) -> Array: ...
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]: ...
def broadcast_to_rank(x: Any, rank: Any) -> Array: ...
def broadcasted_iota(dtype: Any, shape: Any, dimension: Any, *, out_sharding: Any = ...) -> Array: ...
def cbrt(x: Any, *, accuracy: Any = ...) -> Array: ...

cbrt_p: Any

def ceil(x: Any) -> Array: ...

ceil_p: Any

def clamp(min: Any, x: Any, max: Any) -> Array: ...

clamp_p: Any

def clz(x: Any) -> Array: ...

clz_p: Any

def collapse(operand: Any, start_dimension: Any, stop_dimension: Any = ...) -> Array: ...
def complex(x: Any, y: Any) -> Array: ...

complex_p: Any

def composite(decomposition: Any, name: Any, version: Any = ...) -> Any: ...
def concatenate(operands: Any, dimension: Any) -> Array: ...

concatenate_p: Any

def cond(
    pred: Any, true_fun: Callable[..., T], false_fun: Callable[..., T], *operands: Any, operand: Any = ...
) -> T: ...

cond_p: Any

def conj(x: Any) -> Array: ...

conj_p: Any

def conv(
    lhs: Any, rhs: Any, window_strides: Any, padding: Any, precision: Any = ..., preferred_element_type: Any = ...
) -> Array: ...
def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> Any: ...
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = ...,
    rhs_dilation: Any = ...,
    dimension_numbers: Any = ...,
    feature_group_count: Any = ...,
    batch_group_count: Any = ...,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    out_sharding: Any = ...,
) -> Array: ...
def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Any,
    padding: Any,
    filter_shape: Any,
    lhs_dilation: Any = ...,
    rhs_dilation: Any = ...,
    dimension_numbers: Any = ...,
    precision: Any = ...,
) -> Array: ...

conv_general_dilated_p: Any

def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = ...,
    rhs_dilation: Any = ...,
    dimension_numbers: Any = ...,
    precision: Any = ...,
    preferred_element_type: Any = ...,
) -> Array: ...
def conv_general_permutations(dimension_numbers: Any) -> tuple[tuple[int, ...], ...]: ...
def conv_general_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> tuple[int, ...]: ...
def conv_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: Any = ...
) -> tuple[int, ...]: ...
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Any,
    padding: Any,
    rhs_dilation: Any = ...,
    dimension_numbers: Any = ...,
    transpose_kernel: Any = ...,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    use_consistent_padding: Any = ...,
) -> Array: ...
def conv_transpose_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> tuple[int, ...]: ...
def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    precision: Any = ...,
    preferred_element_type: Any = ...,
) -> Array: ...
def convert_element_type(operand: Any, new_dtype: Any) -> Array: ...

convert_element_type_p: Any

def copy(x: Any) -> Array: ...

copy_p: Any

def cos(x: Any, *, accuracy: Any = ...) -> Array: ...

cos_p: Any

def cosh(x: Any) -> Array: ...

cosh_p: Any

def create_token(_: Any = ...) -> Array: ...
def cumlogsumexp(operand: Any, axis: Any = ..., reverse: Any = ...) -> Array: ...

cumlogsumexp_p: Any

def cummax(operand: Any, axis: Any = ..., reverse: Any = ...) -> Array: ...

cummax_p: Any

def cummin(operand: Any, axis: Any = ..., reverse: Any = ...) -> Array: ...

cummin_p: Any

def cumprod(operand: Any, axis: Any = ..., reverse: Any = ...) -> Array: ...

cumprod_p: Any

def cumsum(operand: Any, axis: Any = ..., reverse: Any = ...) -> Array: ...

cumsum_p: Any

def custom_linear_solve(
    matvec: Any, b: Any, solve: Any, transpose_solve: Any = ..., symmetric: Any = ..., has_aux: Any = ...
) -> Any: ...
def custom_root(f: Any, initial_guess: Any, solve: Any, tangent_solve: Any, has_aux: Any = ...) -> Any: ...
def dce_sink(val: Any, *, prevent_mlir_dce: Any = ...) -> None: ...

dce_sink_p: Any

def debug_callback(callback: Any, *args: Any, ordered: Any = ..., partitioned: Any = ..., **kwargs: Any) -> None: ...

debug_callback_p: Any
device_put_p: Any

def digamma(x: Any) -> Array: ...

digamma_p: Any
dim_as_value_p: Any

def dimension_as_value(dim: Any) -> Array: ...
def div(x: Any, y: Any) -> Array: ...

div_p: Any

def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = ...,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    out_sharding: Any = ...,
) -> Array: ...
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    *,
    out_sharding: Any = ...,
) -> Array: ...

dot_general_p: Any

def dtype(x: Any) -> Any: ...
def dynamic_index_in_dim(
    operand: Any, index: Any, axis: Any = ..., keepdims: Any = ..., *, allow_negative_indices: Any = ...
) -> Array: ...
def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: Any = ...
) -> Array: ...
def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: Any, axis: Any = ..., *, allow_negative_indices: Any = ...
) -> Array: ...

dynamic_slice_p: Any

def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: Any, *, allow_negative_indices: Any = ...
) -> Array: ...
def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Any = ...
) -> Array: ...
def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: Any, *, allow_negative_indices: Any = ...
) -> Array: ...

dynamic_update_slice_p: Any

def empty(shape: Any, dtype: Any, *, out_sharding: Any = ...) -> Array: ...

empty_p: Any

def eq(x: Any, y: Any) -> Array: ...

eq_p: Any
eq_to_p: Any

def erf(x: Any) -> Array: ...
def erf_inv(x: Any) -> Array: ...

erf_inv_p: Any
erf_p: Any

def erfc(x: Any) -> Array: ...

erfc_p: Any

def exp(x: Any, *, accuracy: Any = ...) -> Array: ...
def exp2(x: Any, *, accuracy: Any = ...) -> Array: ...

exp2_p: Any
exp_p: Any

def expand_dims(array: Any, dimensions: Any) -> Array: ...
def expm1(x: Any, *, accuracy: Any = ...) -> Array: ...

expm1_p: Any

def fft(x: Any, fft_type: Any, fft_lengths: Any) -> Array: ...

fft_p: Any

def floor(x: Any) -> Array: ...

floor_p: Any
fma_p: Any
from pullback.lax.control.while_loop import fori_loop as fori_loop

def full(shape: Any, fill_value: Any, dtype: Any = ..., *, sharding: Any = ...) -> Array: ...
def full_like(x: Any, fill_value: Any, dtype: Any = ..., shape: Any = ..., sharding: Any = ...) -> Array: ...
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Any,
    *,
    unique_indices: Any = ...,
    indices_are_sorted: Any = ...,
    mode: Any = ...,
    fill_value: Any = ...,
) -> Array: ...

gather_p: Any

def ge(x: Any, y: Any) -> Array: ...

ge_p: Any

def gt(x: Any, y: Any) -> Array: ...

gt_p: Any

def igamma(a: Any, x: Any) -> Array: ...
def igamma_grad_a(a: Any, x: Any) -> Array: ...

igamma_grad_a_p: Any
igamma_p: Any

def igammac(a: Any, x: Any) -> Array: ...

igammac_p: Any

def imag(x: Any) -> Array: ...

imag_p: Any

def index_in_dim(operand: Any, index: Any, axis: Any = ..., keepdims: Any = ...) -> Array: ...
def index_take(src: Any, idxs: Any, axes: Any) -> Array: ...

inspect_sharding_p: Any

def integer_pow(x: Any, y: Any) -> Array: ...

integer_pow_p: Any

def io_callback(
    callback: Any, result_shape_dtypes: Any, *args: Any, sharding: Any = ..., ordered: Any = ..., **kwargs: Any
) -> Any: ...

io_callback_p: Any

def iota(dtype: Any, size: Any) -> Array: ...

iota_p: Any

def is_finite(x: Any) -> Array: ...

is_finite_p: Any

def le(x: Any, y: Any) -> Array: ...

le_p: Any
le_to_p: Any

def lgamma(x: Any) -> Array: ...

lgamma_p: Any
linear_solve_p: Any

def log(x: Any, *, accuracy: Any = ...) -> Array: ...
def log1p(x: Any, *, accuracy: Any = ...) -> Array: ...

log1p_p: Any
log_p: Any

def logistic(x: Any, *, accuracy: Any = ...) -> Array: ...

logistic_p: Any

def lt(x: Any, y: Any) -> Array: ...

lt_p: Any
lt_to_p: Any

def map(f: Callable[[Any], T], xs: Any, *, batch_size: int | None = ...) -> T: ...
def max(x: Any, y: Any) -> Array: ...

max_p: Any

def min(x: Any, y: Any) -> Array: ...

min_p: Any

def mul(x: Any, y: Any, *, out_dtype: Any = ...) -> Array: ...

mul_p: Any

def mulhi(x: Any, y: Any) -> Array: ...

mulhi_p: Any

def ne(x: Any, y: Any) -> Array: ...

ne_p: Any

def neg(x: Any) -> Array: ...

neg_p: Any

def nextafter(x1: Any, x2: Any) -> Array: ...

nextafter_p: Any
not_p: Any

def optimization_barrier(operand: T, /) -> T: ...

optimization_barrier_p: Any
or_p: Any

def pad(operand: Any, padding_value: Any, padding_config: Any) -> Array: ...

pad_p: Any

def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: Any) -> list[tuple[int, int]]: ...
def pbroadcast(x: T, axis_name: Any, source: Any) -> T: ...
def pcast(x: T, axis_name: Any, *, to: Any) -> T: ...
def platform_dependent(*args: Any, default: Any = ..., **per_platform: Any) -> Any: ...
def pmax(x: T, axis_name: Any, *, axis_index_groups: Any = ...) -> T: ...

pmax_p: Any

def pmean(x: T, axis_name: Any, *, axis_index_groups: Any = ...) -> T: ...
def pmin(x: T, axis_name: Any, *, axis_index_groups: Any = ...) -> T: ...

pmin_p: Any

def polygamma(m: Any, x: Any) -> Array: ...

polygamma_p: Any

def population_count(x: Any) -> Array: ...

population_count_p: Any

def pow(x: Any, y: Any) -> Array: ...

pow_p: Any

def ppermute(x: T, axis_name: Any, perm: Any) -> T: ...

ppermute_p: Any

def precv(token: Any, out_shape: Any, axis_name: Any, perm: Any) -> Any: ...
def psend(x: Any, axis_name: Any, perm: Any) -> Any: ...
def pshuffle(x: T, axis_name: Any, perm: Any) -> T: ...
def psum(x: T, axis_name: Any, *, axis_index_groups: Any = ...) -> T: ...

psum_invariant_p: Any
psum_p: Any

def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: Any = ..., axis_index_groups: Any = ..., tiled: Any = ...
) -> Any: ...
def pswapaxes(x: Any, axis_name: Any, axis: Any, *, axis_index_groups: Any = ...) -> Any: ...
def pure_callback(
    callback: Any, result_shape_dtypes: Any, *args: Any, sharding: Any = ..., vmap_method: Any = ..., **kwargs: Any
) -> Any: ...

pure_callback_p: Any

def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = ...,
) -> Any: ...

ragged_all_to_all_p: Any

def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    group_offset: Any = ...,
    out_sharding: Any = ...,
) -> Array: ...
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: Any,
    precision: Any = ...,
    preferred_element_type: Any = ...,
    group_offset: Any = ...,
    out_sharding: Any = ...,
) -> Array: ...
def random_gamma_grad(a: Any, x: Any) -> Array: ...

random_gamma_grad_p: Any

def real(x: Any) -> Array: ...

real_p: Any

def reciprocal(x: Any) -> Array: ...
def reduce(operands: Any, init_values: Any, computation: Any, dimensions: Any, out_sharding: Any = ...) -> Any: ...
def reduce_and(operand: Any, axes: Any) -> Array: ...

reduce_and_p: Any

def reduce_max(operand: Any, axes: Any) -> Array: ...

reduce_max_p: Any

def reduce_min(operand: Any, axes: Any) -> Array: ...

reduce_min_p: Any

def reduce_or(operand: Any, axes: Any) -> Array: ...

reduce_or_p: Any
reduce_p: Any

def reduce_precision(operand: Any, exponent_bits: Any, mantissa_bits: Any) -> Array: ...

reduce_precision_p: Any

def reduce_prod(operand: Any, axes: Any) -> Array: ...

reduce_prod_p: Any
reduce_scatter_p: Any

def reduce_sum(operand: Any, axes: Any, *, out_sharding: Any = ...) -> Array: ...

reduce_sum_p: Any

def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Any,
    window_dimensions: Any,
    window_strides: Any = ...,
    padding: Any = ...,
    base_dilation: Any = ...,
    window_dilation: Any = ...,
) -> Any: ...

reduce_window_max_p: Any
reduce_window_min_p: Any
reduce_window_p: Any

def reduce_window_shape_tuple(
    operand_shape: Any,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any = ...,
    window_dilation: Any = ...,
) -> tuple[int, ...]: ...

reduce_window_sum_p: Any

def reduce_xor(operand: Any, axes: Any) -> Array: ...

reduce_xor_p: Any
regularized_incomplete_beta_p: Any

def rem(x: Any, y: Any) -> Array: ...

rem_p: Any

def reshape(operand: Any, new_sizes: Any, dimensions: Any = ..., *, out_sharding: Any = ...) -> Array: ...

reshape_p: Any
reshard_p: Any

def rev(operand: Any, dimensions: Any) -> Array: ...

rev_p: Any

def rng_bit_generator(
    key: Any, shape: Any, dtype: Any = ..., algorithm: Any = ..., *, out_sharding: Any = ...
) -> Any: ...

rng_bit_generator_p: Any

def rng_uniform(a: Any, b: Any, shape: Any) -> Array: ...

rng_uniform_p: Any

def round(x: Any, rounding_method: Any = ...) -> Array: ...

round_p: Any

def rsqrt(x: Any, *, accuracy: Any = ...) -> Array: ...

rsqrt_p: Any

def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = ...,
    rhs_scale: Any = ...,
    dimension_numbers: Any = ...,
    preferred_element_type: Any = ...,
) -> Array: ...

from pullback.lax.control.scan import scan as scan

scan_p: Any

def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...
def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...

scatter_add_p: Any

def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Any,
    dimension_numbers: Any,
    *,
    update_shape: Any = ...,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...
def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...

scatter_max_p: Any

def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...

scatter_min_p: Any

def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...

scatter_mul_p: Any
scatter_p: Any

def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: Any,
    *,
    indices_are_sorted: Any = ...,
    unique_indices: Any = ...,
    mode: Any = ...,
) -> Array: ...

scatter_sub_p: Any

def select(pred: Any, on_true: Any, on_false: Any) -> Array: ...

select_and_gather_add_p: Any
select_and_scatter_add_p: Any
select_and_scatter_p: Any

def select_n(which: Any, *cases: Any) -> Array: ...

select_n_p: Any

def shape_as_value(shape: Any) -> Array: ...

shard_alike_p: Any
sharding_constraint_p: Any

def shift_left(x: Any, y: Any) -> Array: ...

shift_left_p: Any

def shift_right_arithmetic(x: Any, y: Any) -> Array: ...

shift_right_arithmetic_p: Any

def shift_right_logical(x: Any, y: Any) -> Array: ...

shift_right_logical_p: Any

def sign(x: Any) -> Array: ...

sign_p: Any

def sin(x: Any, *, accuracy: Any = ...) -> Array: ...

sin_p: Any

def sinh(x: Any) -> Array: ...

sinh_p: Any

def slice(operand: Any, start_indices: Any, limit_indices: Any, strides: Any = ...) -> Array: ...
def slice_in_dim(operand: Any, start_index: Any, limit_index: Any, stride: Any = ..., axis: Any = ...) -> Array: ...

slice_p: Any

def sort(operand: Any, dimension: Any = ..., is_stable: Any = ..., num_keys: Any = ...) -> Any: ...
def sort_key_val(keys: Any, values: Any, dimension: Any = ..., is_stable: Any = ...) -> tuple[Array, Array]: ...

sort_p: Any

def split(operand: Any, sizes: Any, axis: Any = ...) -> list[Array]: ...

split_p: Any

def sqrt(x: Any, *, accuracy: Any = ...) -> Array: ...

sqrt_p: Any

def square(x: Any) -> Array: ...

square_p: Any

def squeeze(array: Any, dimensions: Any) -> Array: ...

squeeze_p: Any

def stack(operands: Any, axis: Any = ...) -> Array: ...

stack_p: Any

def stage(x: Any, /) -> Array: ...

stage_p: Any

def stop_gradient(x: T) -> T: ...

stop_gradient_p: Any

def sub(x: Any, y: Any) -> Array: ...

sub_p: Any

def switch(index: Any, branches: Sequence[Callable[..., T]], *operands: Any, operand: Any = ...) -> T: ...
def tan(x: Any, *, accuracy: Any = ...) -> Array: ...

tan_p: Any

def tanh(x: Any, *, accuracy: Any = ...) -> Array: ...

tanh_p: Any

def tile(operand: Any, reps: Any) -> Array: ...

tile_p: Any

def top_k(operand: Any, k: Any, *, axis: Any = ...) -> list[Array]: ...

top_k_p: Any

def transpose(operand: Any, permutation: Any) -> Array: ...

transpose_p: Any

def unstack(x: Any, axis: Any = ...) -> tuple[Array, ...]: ...

unstack_p: Any
from pullback.lax.control.while_loop import while_loop as while_loop

while_p: Any

def with_sharding_constraint(x: T, shardings: Any) -> T: ...

xor_p: Any

def zeta(x: Any, q: Any) -> Array: ...

zeta_p: Any

def __getattr__(name: str) -> Any: ...
