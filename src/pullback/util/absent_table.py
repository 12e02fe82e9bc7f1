"""Which names of JAX are not here, by module, and why: the table behind absent.py.

A name with parameters is a function; `=` says that a parameter has a default.
"""

from __future__ import annotations

REASONS = {
    "mlir": "belongs to MLIR and StableHLO, through which pullback does not compile",
    "xla": "belongs to XLA's runtime, which is not here",
    "gpu": "belongs to GPUs or TPUs or to cuDNN, and there is none of them",
    "pallas": "belongs to Pallas, whose kernels are compiled for GPUs and TPUs through MLIR, which is not here",
    "internal": "is a part of JAX's own implementation, which is another here",
    "unwritten": "is not written yet",
}

# For each module: reasons, and the names that are not there for it.
_BY_REASON: dict[str, dict[str, tuple[str, ...]]] = {
    "ad_checkpoint": {
        "internal": (
            "Offloadable", "Recompute", "Saveable",
        ),
    },
    "custom_derivatives": {
        "internal": (
            "remat_opt_p",
        ),
    },
    "experimental": {
        "internal": (
            "primal_tangent_dtype(primal_dtype, tangent_dtype, name=)",
        ),
        "unwritten": (
            "EArray",
        ),
    },
    "experimental.control_deps": {
        "xla": (
            "control_dep(src, dst)", "schedule(ops)",
        ),
    },
    "experimental.fused": {
        "xla": (
            "fused_p",
        ),
    },
    "experimental.hijax": {
        "internal": (
            "HiPspec", "TransformedRef",
        ),
    },
    "experimental.jet": {
        "internal": (
            "JetTrace", "JetTracer", "call_param_updaters", "deriv_prop(prim, deriv, primals_in, series_in)",
            "jet_fun(fun, *gen_static_args)", "jet_subtrace(fun, *gen_static_args)",
            "linear_prop(prim, primals_in, series_in, **params)",
            "traceable(fun, *gen_static_args, use_eq_store=, unk_names=)",
            "zero_prop(prim, primals_in, series_in, **params)",
        ),
        "unwritten": (
            "def_comp(prim, comp, **kwargs)", "def_deriv(prim, deriv)", "deflinear(prim)", "defzero(prim)",
            "jet_rules",
        ),
    },
    "experimental.layout": {
        "unwritten": (
            "with_layout_constraint(x, layouts)",
        ),
    },
    "experimental.multihost_utils": {
        "internal": (
            "global_array_to_host_local_array_impl(arr, *, global_mesh, pspec)", "global_array_to_host_local_array_p",
            "gtl_abstract_eval(arr, *, global_mesh, pspec)",
            "host_local_array_to_global_array_impl(arr, *, global_mesh, pspec)", "host_local_array_to_global_array_p",
            "ltg_abstract_eval(arr, *, global_mesh, pspec)",
            "ltg_batcher(insert_axis, axis_data, vals_in, dims_in, global_mesh, pspec)",
        ),
    },
    "experimental.ode": {
        "internal": (
            "abs2(x)", "fit_4th_order_polynomial(y0, y1, y_mid, dy0, dy1, dt)",
            "initial_step_size(fun, t0, y0, order, rtol, atol, f0)", "interp_fit_dopri(y0, y1, k, dt)",
            "mean_error_ratio(error_estimate, rtol, atol, y0, y1)",
            "optimal_step_size(last_step, mean_error_ratio, safety=, ifactor=, dfactor=, order=)",
            "ravel_first_arg_(fun, *gen_static_args)",
            "runge_kutta_step(func, y0, f0, t0, dt)",
        ),
    },
    "experimental.pallas": {
        "pallas": (
            "ANY", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams", "CostEstimate",
            "DeviceIdType", "Element", "GridSpec", "HOST", "Indirect", "MemoryRef", "MemorySpace", "RevisitMode",
            "Slice", "Squeezed", "broadcast_to", "core_map", "debug_check", "debug_print", "delay", "ds", "dslice",
            "empty", "empty_like", "empty_ref_like", "enable_debug_checks", "enable_poison_buffers", "estimate_cost",
            "get_global", "kernel", "loop", "lower_as_mlir", "multiple_of", "no_block_spec", "num_programs",
            "pallas_call", "pallas_call_p", "pallas_export_experimental", "program_id", "reciprocal", "run_scoped",
            "run_state", "select_ref", "semaphore", "semaphore_read", "semaphore_signal", "semaphore_wait", "squeezed",
            "when", "with_scoped",
        ),
    },
    "experimental.pallas.mosaic_gpu": {
        "pallas": (
            "ACC", "Barrier", "BlockSpec", "ClusterBarrier", "CompilerParams", "CopyPartition", "GMEM", "Layout",
            "LoweringSemantics", "MemorySpace", "Mesh", "NDLoopInfo", "OOBFillMode", "PeerMemRef", "PipelinePipeline",
            "REGS", "RefType", "RefUnion", "Replicated", "SMEM", "SemaphoreSignal", "SemaphoreType",
            "ShapeDtypeStruct", "SwizzleTransform", "TMEM", "TMEMLayout", "Tiling", "TilingTransform", "TraceScope",
            "Transform", "TryClusterCancelResult", "WGMMAAccumulatorRef", "WarpMesh", "as_torch_kernel",
            "async_copy_scales_to_tmem", "async_copy_smem_to_tmem", "async_copy_sparse_metadata_to_tmem",
            "async_load_tmem", "async_prefetch", "async_store_smem", "async_store_tmem", "atomic_add", "atomic_and",
            "atomic_max", "atomic_min", "atomic_or", "atomic_xor", "barrier_arrive", "barrier_test", "barrier_wait",
            "broadcasted_iota", "cluster_ref", "commit_smem", "commit_smem_to_gmem_group", "commit_tmem",
            "copy_gmem_to_smem", "copy_smem_to_gmem", "dynamic_scheduling_loop", "emit_pipeline",
            "emit_pipeline_warp_specialized", "find_swizzle", "format_tcgen05_sparse_metadata",
            "griddepcontrol_launch_dependents", "griddepcontrol_wait", "inline_mgpu", "kernel", "layout_cast", "load",
            "multicast_ref", "multimem_load_reduce", "multimem_store", "nd_loop", "planar_snake", "print_layout",
            "query_cluster_cancel", "remote_ref", "semaphore_signal", "semaphore_signal_multicast",
            "semaphore_signal_parallel", "semaphore_wait", "set_max_registers", "tcgen05_commit_arrive", "tcgen05_mma",
            "transform_ref", "transpose_ref", "try_cluster_cancel", "wait_load_tmem", "wait_smem_to_gmem", "warp_map",
            "wgmma", "wgmma_accumulator_load", "wgmma_wait",
        ),
    },
    "experimental.pallas.ops.tpu.flash_attention": {
        "pallas": ("BlockSizes", "SegmentIds", "flash_attention", "mha_reference"),
    },
    "experimental.pallas.ops.tpu.splash_attention": {
        "pallas": (
            "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask", "QKVLayout",
            "SegmentIds", "SplashAttentionKernel", "make_causal_mask", "make_local_attention_mask",
            "make_masked_mha_reference", "make_masked_mqa_reference", "make_random_mask", "make_splash_mha",
            "make_splash_mha_single_device", "make_splash_mqa", "make_splash_mqa_single_device",
        ),
    },
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel": {
        "pallas": (
            "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel", "attention_reference",
            "attention_reference_custom", "flash_attention_kernel", "make_attention_reference",
            "make_masked_mha_reference", "make_masked_mqa_reference", "make_splash_mha",
            "make_splash_mha_single_device", "make_splash_mqa", "make_splash_mqa_single_device",
        ),
    },
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask": {
        "pallas": (
            "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask",
            "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_chunk_attention_mask",
            "make_local_attention_mask", "make_random_mask",
        ),
    },
    "experimental.pallas.tpu": {
        "pallas": (
            "ARBITRARY", "BufferType", "BufferedRef", "BufferedRefBase", "CMEM", "CORE_PARALLEL", "ChipVersion",
            "CompilerParams", "CoreType", "GridDimensionSemantics", "HBM", "InterpretParams", "LoweringException",
            "MemorySpace", "PARALLEL", "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL",
            "SemaphoreType", "SideEffectType", "Tiling", "TpuInfo", "VMEM", "VMEM_SHARED", "async_copy",
            "async_remote_copy", "bitcast", "core_barrier", "create_tensorcore_mesh", "dma_semaphore", "einshape",
            "emit_pipeline", "emit_pipeline_with_allocations", "force_tpu_interpret_mode", "get_barrier_semaphore",
            "get_tpu_info", "get_tpu_info_for_chip", "is_tpu_device", "load", "make_async_copy",
            "make_async_remote_copy", "matmul_acc_lhs", "matmul_pop", "matmul_push_rhs", "pack_elementwise",
            "prng_random_bits", "prng_seed", "reset_tpu_interpret_mode_state", "roll", "run_on_first_core",
            "sample_block", "set_tpu_interpret_mode", "stateful_bernoulli", "stateful_bits", "stateful_normal",
            "stateful_uniform", "stochastic_round", "store", "sync_copy", "to_pallas_key", "touch", "trace_value",
            "unpack_elementwise", "with_memory_space_constraint",
        ),
    },
    "experimental.pallas.triton": {
        "pallas": (
            "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min",
            "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "elementwise_inline_asm", "load",
            "max_contiguous", "store",
        ),
    },
    "experimental.profiler": {
        "mlir": (
            "get_profiled_instructions_proto(tensorboard_dir)",
        ),
    },
    "experimental.rnn": {
        "gpu": (
            "lstm_bwd(input_size, hidden_size, num_layers, dropout, bidirectional, precision, residuals, gra"
            "dients)",
            "lstm_fwd(x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirection"
            "al, precision)",
            "rnn_abstract_eval(x_aval, h_0_aval, c_0_aval, w_aval, seq_lengths_aval, input_size, hidden_size"
            ", num_layers, dropout, bidirectional, cudnn_allow_tf32)",
            "rnn_bwd_abstract_eval(dy_aval, dhn_aval, dcn_aval, x_aval, h0_aval, c0_aval, w_aval, y_aval, re"
            "serve_space_aval, seq_lengths_aval, input_size, hidden_size, num_layers, dropout, bidirectional"
            ", cudnn_allow_tf32)",
            "rnn_bwd_p", "rnn_fwd_p",
        ),
    },
    "experimental.scheduling_groups": {
        "xla": (
            "attr_get(x)", "dce_jaxpr_xla_metadata_rule(used_outputs, eqn)", "scheduling_group(name)",
            "xla_metadata_call(f=, **meta)", "xla_metadata_call_p",
        ),
    },
    "experimental.source_mapper": {
        "mlir": (
            "MappingsGenerator", "Pass", "SourceMap", "SourceMapDump", "all_passes()",
            "canonicalize_filename(file_name)", "compile_with_env(f, f_args, f_kwargs, env_flags, compiler_flags)",
            "create_mlir_sourcemap(mlir_dump)", "filter_passes(regex)",
            "generate_sourcemaps(f, passes, **pass_kwargs)", "register_pass(pass_)",
        ),
    },
    "experimental.source_mapper.common": {
        "mlir": (
            "CompileFn", "GenerateDumpFn", "Pass", "SourceMapDump", "all_passes()",
            "compile_with_env(f, f_args, f_kwargs, env_flags, compiler_flags)", "filter_passes(regex)",
            "flag_env(**kwargs)", "register_pass(pass_)",
        ),
    },
    "experimental.source_mapper.generate_map": {
        "mlir": (
            "SourceMapGeneratorFn", "generate_sourcemaps(f, passes, **pass_kwargs)",
        ),
    },
    "experimental.source_mapper.hlo": {
        "mlir": (
            "HloPass", "METADATA_REGEX", "optimized_generate_dump(args, xla_compiler_flags=, **_)",
            "original_hlo_generate_dump(args, **_)", "parse_hlo_dump(text)", "stable_hlo_generate_dump(args, **_)",
            "trace_and_lower(work_dir, f, f_args, f_kwargs, **_)",
        ),
    },
    "experimental.source_mapper.jaxpr": {
        "mlir": (
            "canonicalize_filename(file_name)", "compile_jaxpr(work_dir, f, f_args, f_kwargs, **_)",
            "make_jaxpr_dump(jaxpr, **_)",
        ),
    },
    "experimental.source_mapper.mlir": {
        "mlir": (
            "CALLSITE_REGEX", "LOC_REGEX", "Location", "Redirect", "SCOPED_REGEX", "SRC_REGEX",
            "create_mlir_sourcemap(mlir_dump)", "parse_mlir_locations(mlir_dump)",
        ),
    },
    "experimental.sparse": {
        "internal": (
            "SparseTracer",
        ),
    },
    "experimental.sparse.ad": {
        "internal": (
            "flatten_fun_for_sparse_ad(fun, argnums, args)",
        ),
    },
    "experimental.sparse.bcoo": {
        "internal": (
            "Buffer", "CUSPARSE_DATA_DTYPES", "CUSPARSE_INDEX_DTYPES",
        ),
    },
    "experimental.sparse.linalg": {
        "internal": (
            "spsolve_p",
        ),
    },
    "experimental.sparse.transform": {
        "internal": (
            "Array", "ArrayOrSparse", "SparseTrace", "SparseTracer", "sparse_rules_bcoo", "sparse_rules_bcsr",
            "sparsify_fun(wrapped_fun, args)", "sparsify_subtrace(fun, *gen_static_args, use_eq_store=, unk_names=)",
        ),
    },
    "experimental.transfer": {
        "xla": (
            "TransferConnection", "TransferServer", "start_transfer_server",
        ),
    },
    "extend.backend": {
        "mlir": (
            "ifrt_proxy",
        ),
        "xla": (
            "backend_xla_version(platform=)",
            "get_compile_options(num_replicas, num_partitions, device_assignment=, env_options_overrides=, f"
            "do_profile=, detailed_logging=, backend=)",
            "register_backend_cache(cache, for_what)",
            "register_backend_factory(name, factory, *, priority=, fail_quietly=, experimental=, make_topolo"
            "gy=, c_api=)",
        ),
    },
    "extend.core": {
        "internal": (
            "CallPrimitive", "JaxprPpContext", "JaxprPpSettings", "Token", "aval_mapping_handlers",
            "call(*args, **params)", "concretization_function_error(fun, suggest_astype=)", "custom_typechecks",
        ),
    },
    "extend.core.primitives": {
        "internal": (
            "after_all_p", "create_token_p", "empty2_p", "get_p",
            "select_and_scatter_p", "swap_p", "threefry2x32_p",
        ),
    },
    "extend.ifrt_programs": {
        "mlir": (
            "ifrt_programs",
        ),
    },
    "extend.lowering": {
        "mlir": (
            "JaxIrContext", "LoweringRuleContext", "upstream_dialects",
        ),
    },
    "extend.mlir": {
        "mlir": (
            "deserialize_portable_artifact", "hlo_to_stablehlo", "lower_with_sharding_in_types(ctx, op, aval)",
            "passmanager", "refine_polymorphic_shapes", "serialize_portable_artifact",
        ),
    },
    "extend.mlir.dialects": {
        "mlir": (
            "arith", "builtin", "chlo", "func", "hlo", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor",
            "stablehlo", "vector",
        ),
    },
    "extend.pallas": {
        "pallas": (
            "GridMapping", "register_lowering_rule(params_cls, rule, platform)",
        ),
    },
    "extend.random": {
        "internal": (
            "random_seed(seeds, impl)", "seed_with_impl(impl, seed)", "threefry2x32_p",
        ),
    },
    "extend.xla": {
        "xla": (
            "PipelineStage", "clear_hlo_module_transformation(name, stage=, platforms=)",
            "register_hlo_module_transformation(callback, *, name, stage=, platforms=)",
        ),
    },
    "ffi": {
        "mlir": (
            "build_ffi_lowering_function(call_target_name, *, operand_layouts=, result_layouts=, backend_con"
            "fig=, skip_ffi_layout_processing=, **lowering_args)",
        ),
    },
    "interpreters.ad": {
        "internal": (
            "add_jaxvals_p", "get_primitive_transpose(p)",
        ),
        "unwritten": (
            "jvp(fun, primals, tangents, has_aux=, instantiate=, transform_stack=)",
            "linearize(traceable, primals_ft, has_aux=, is_vjp=)",
        ),
    },
    "interpreters.batching": {
        "internal": (
            "broadcast(x, sz, axis, mesh_axis)",
        ),
    },
    "interpreters.mlir": {
        "mlir": (
            "AxisContext(*args, **kwargs)", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters",
            "LoweringResult", "LoweringRule", "Mesh", "MeshAxisName",
            "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "SPMDAxisContext", "ShapePolyLoweringState",
            "ShardingContext", "Token", "TokenSet", "Value", "aval_to_ir_type(ctx, aval)",
            "aval_to_ir_types(ctx, aval)", "core_call_lowering(ctx, *args, name, backend=, call_jaxpr)",
            "dense_int_array", "dense_int_elements(xs)", "dtype_to_ir_type(dtype)",
            "flatten_ir_types(xs)", "flatten_ir_values(xs)", "i32_attr(i)", "i64_attr(i)", "ir", "ir_attribute(val)",
            "ir_constant(val, *, const_lowering=, aval=)", "ir_constants(val, *, const_lowering=, aval=)",
            "ir_tree_registry", "ir_type_handlers",
            "jaxpr_subcomp(ctx, jaxpr, name_stack, tokens, consts_for_constvars, *args, dim_var_values, cons"
            "t_lowering, outer_traceback)",
            "lower_jaxpr_to_fun(ctx, name, jaxpr, effects, *, num_const_args, main_function=, replicated_arg"
            "s=, in_avals, arg_shardings=, result_shardings=, use_sharding_annotations=, input_output_aliase"
            "s=, xla_donated_args=, arg_names=, result_names=, arg_memory_kinds=, result_memory_kinds=, arg_"
            "layouts=, result_layouts=, propagated_out_mem_kinds=)",
            "lower_jaxpr_to_module(module_name, jaxpr, *, num_const_args, in_avals, ordered_effects, platfor"
            "ms, backend, axis_context, donated_args, replicated_args=, arg_shardings=, result_shardings=, i"
            "n_layouts=, out_layouts=, arg_names=, result_names=, num_partitions=, all_default_mem_kind=, in"
            "put_output_aliases=, propagated_out_mem_kinds=, lowering_parameters)",
            "lowerable_effects", "make_ir_context()",
            "merge_mlir_modules(dst_module, sym_name, src_module, dst_symtab=)", "module_to_bytecode(module)",
            "module_to_string(module, enable_debug_info=)", "register_constant_handler(type_, handler_fun)",
            "shape_tensor(ctx, sizes)", "token_type", "unflatten_ir_values_like_types(xs, ys)",
        ),
    },
    "interpreters.partial_eval": {
        "internal": (
            "Val", "custom_partial_eval_rules",
            "dce_jaxpr_call_rule(used_outputs, eqn)", "dce_jaxpr_closed_call_rule(used_outputs, eqn)",
            "dce_jaxpr_consts(jaxpr, used_outputs, instantiate=)", "dce_rules", "partial_eval_jaxpr_custom_rules",
            "trace_to_jaxpr_dynamic(fun, in_avals, *, keep_inputs=, lower=, auto_dce=)",
        ),
    },
    "interpreters.pxla": {
        "xla": (
            "ArrayMapping", "Index(*args, **kwargs)", "MeshAxisName", "MeshComputation", "MeshExecutable",
            "are_hlo_shardings_equal(hc1, hc2)", "array_mapping_to_axis_resources(array_mapping)",
            "create_compile_options(computation, tuple_args, allow_prop_to_inputs, allow_prop_to_outputs, ba"
            "ckend, np_dev, compiler_options)",
            "global_aval_to_result_handler(aval, out_sharding, committed)",
            "global_avals_to_results_handler(global_out_avals, shardings, committed)", "global_result_handlers",
            "is_hlo_sharding_replicated(hc)", "op_sharding_to_indices(op_sharding, shape, num_devices)",
        ),
    },
    "interpreters.xla": {
        "xla": (
            "Backend",
        ),
    },
    "jax_names.src.batching": {
        "internal": (
            "make_iota(axis_size)", "to_elt(trace, get_idx, x, spec)",
        ),
    },
    "lax": {
        "internal": (
            "after_all_p", "create_token_p",
        ),
    },
    "lax.linalg": {
        "internal": (
            "symmetric_product_p",
        ),
    },
    "profiler": {
        "xla": (
            "ProfileData", "ProfileEvent", "ProfilePlane", "register_subprocess(pid, port)",
        ),
    },
    "pullback": {
        "internal": (
            "ad", "make_user_context(default_value=)",
        ),
        "unwritten": (
        ),
    },
    "random": {
        "internal": (
            "random_gamma_p",
        ),
    },
}  # fmt: skip

TABLE = {
    module: tuple((reason, entry) for reason, entries in groups.items() for entry in entries)
    for module, groups in _BY_REASON.items()
}

__all__ = ["REASONS", "TABLE"]
