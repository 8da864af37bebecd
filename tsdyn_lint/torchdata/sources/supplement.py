"""Return kinds of what torch leaves without an annotation, read off its source by hand; the tests compare them
with a real torch."""

from __future__ import annotations

Choices = tuple[tuple[str, int, str, str], ...]

_PAIR, _TRIPLE, _MANY = "tuple[tensor,tensor]", "tuple[tensor,tensor,tensor]", "tuple[tensor,...]"


def _unique(first: int) -> Choices:
    """`return_inverse` stands at `first`, `return_counts` after it."""
    return (
        ("", -1, "", "tensor"),
        ("return_inverse&return_counts", first, "true", _TRIPLE),
        ("return_inverse", first, "true", _PAIR),
        ("return_counts", first + 1, "true", _PAIR),
    )


def _each(scope: str, kind: str, names: str) -> dict[str, str | Choices]:
    return {f"{scope}.{name}": kind for name in names.split()}


_ATLEAST: Choices = (("", -1, "", "tensor"), ("tensors", 0, "list", _MANY), ("tensors", 1, "", _MANY))

RETURNS: dict[str, str | Choices] = {
    **_each("torch", "tensor", "block_diag cdist chain_matmul norm tensordot einsum istft"),
    **_each(
        "torch",
        _MANY,
        "broadcast_tensors meshgrid split unsafe_split split_copy unbind_copy split_with_sizes unsafe_split_with_sizes",
    ),
    **_each("torch", "bool", "is_tensor is_storage is_warn_always_enabled sym_not"),
    **_each("torch", "none", "set_printoptions set_default_device set_default_dtype set_default_tensor_type"),
    **_each("torch", "int", "sym_int"),
    **_each("torch", "float", "sym_float"),
    **_each("torch", "number", "sym_max sym_min sym_sum"),
    "torch.histogramdd": "tuple[tensor,tuple[tensor,...]]",
    "torch.broadcast_shapes": "size",
    "torch.compile": "callable",
    "torch.load": "any",
    "torch.cond": "any",
    "torch.while_loop": "any",
    "torch.vmap": "callable",
    **_each("torch", "number", "sym_sqrt sym_ite sym_fresh_size"),
    "torch.atleast_1d": _ATLEAST,
    "torch.atleast_2d": _ATLEAST,
    "torch.atleast_3d": _ATLEAST,
    "torch.where": (("", -1, "", _MANY), ("input", 1, "", "tensor"), ("self", 1, "", "tensor")),
    "torch.nonzero": (("", -1, "", "tensor"), ("as_tuple", 1, "true", _MANY)),
    "torch.unique": _unique(2),
    "torch.unique_consecutive": _unique(1),
    "torch.stft": "tensor",
    "torch.lu": (("", -1, "", _PAIR), ("get_infos", 2, "true", _TRIPLE)),
    "torch.dequantize": (("", -1, "", "tensor"), ("tensors", 0, "list", _MANY)),
    # Tensor: defined in Python without annotations, or overloads that differ in more than a parameter's presence
    **_each(
        "torch.Tensor", "tensor", "norm resize resize_as unflatten to_sparse_coo share_memory_ stft istft __reversed__"
    ),
    **_each("torch.Tensor", "tensor", "cdouble cfloat ipu mtia __pos__ __ipow__ __itruediv__"),
    **_each("torch.Tensor", "none", "backward retain_grad reinforce"),
    **_each("torch.Tensor", "bool", "is_shared __contains__"),
    **_each("torch.Tensor", "int", "__len__ __hash__ __index__ __int__"),
    **_each("torch.Tensor", _MANY, "split split_with_sizes unsafe_split unsafe_split_with_sizes chunk unsafe_chunk"),
    **_each("torch.Tensor", "str", "__repr__ __format__"),
    **_each("torch.Tensor", "storage", "storage untyped_storage"),
    **_each("torch.Tensor", "object", "register_hook register_post_accumulate_grad_hook grad_fn"),
    "torch.Tensor.__iter__": "iterator[tensor]",
    "torch.Tensor.__array__": "ndarray",
    "torch.Tensor.dim_order": "tuple[int,...]",
    "torch.Tensor.lu": (("", -1, "", _PAIR), ("get_infos", 1, "true", _TRIPLE)),
    "torch.Tensor.nonzero": (("", -1, "", "tensor"), ("as_tuple", 0, "true", _MANY)),
    "torch.Tensor.size": (("", -1, "", "size"), ("dim", 0, "", "int")),
    "torch.Tensor.stride": (("", -1, "", "tuple[int,...]"), ("dim", 0, "", "int")),
    "torch.Tensor.type": (("", -1, "", "str"), ("dtype", 0, "", "tensor")),
    "torch.Tensor.unique": _unique(1),
    "torch.Tensor.unique_consecutive": _unique(0),
    "torch.Tensor.__eq__": "tensor",
    "torch.Tensor.__ne__": "tensor",
    "torch.Tensor.item": "number",
    # functional
    **_each(
        "torch.nn.functional", "tensor", "tanhshrink softsign tanh sigmoid upsample upsample_nearest upsample_bilinear"
    ),
    "torch.nn.functional.multi_head_attention_forward": "tuple[tensor,tensor?]",
    **_each(
        "torch.nn.utils", "module", "fuse_conv_bn_eval fuse_linear_bn_eval weight_norm spectral_norm remove_weight_norm"
    ),
    **_each("torch.nn.utils", "module", "remove_spectral_norm skip_init"),
    **_each("torch.nn.utils.parametrizations", "module", "weight_norm spectral_norm orthogonal"),
    # autograd, checkpoint, jit
    "torch.autograd.grad": _MANY,
    "torch.autograd.backward": "none",
    "torch.autograd.variable": "tensor",
    "torch.autograd.Variable": "tensor",
    "torch.autograd.functional.vjp": "tuple[any,any]",
    "torch.autograd.functional.jvp": "tuple[any,any]",
    "torch.autograd.functional.vhp": "tuple[any,any]",
    "torch.autograd.functional.hvp": "tuple[any,any]",
    "torch.utils.checkpoint.checkpoint": "call",
    "torch.utils.checkpoint.checkpoint_sequential": "any",
    "torch.jit.annotate": "any",
    "torch.jit.fork": "future",
    "torch.jit.wait": "any",
    "torch.jit.isinstance": "bool",
    **_each("torch.jit", "bool", "is_scripting is_tracing"),
    **_each("torch.jit", "callable", "ignore unused export script_if_tracing script_method interface"),
    "torch.jit.script": "any",
    "torch.jit.trace": "any",
    "torch.jit.freeze": "module",
    "torch.jit.trace_module": "module",
    "torch.compiler.disable": "callable",
    "torch._dynamo.disable": "callable",
    # distributed: collectives give None, or a Work with async_op=True
    **_each(
        "torch.distributed",
        "none",
        "broadcast all_reduce reduce all_gather all_gather_into_tensor gather scatter barrier",
    ),
    **_each(
        "torch.distributed",
        "none",
        "reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single monitored_barrier",
    ),
    **_each("torch.distributed", "none", "all_gather_object gather_object broadcast_object_list scatter_object_list"),
    **_each("torch.distributed", "none", "destroy_process_group all_gather_coalesced all_reduce_coalesced"),
    **_each("torch.distributed", "str", "get_backend"),
    **_each("torch.distributed", "object", "new_group isend irecv"),
    **_each("torch.distributed.nn.functional", "tensor", "all_reduce broadcast reduce reduce_scatter scatter"),
    **_each("torch.distributed.nn.functional", _MANY, "all_gather all_to_all gather"),
    # devices
    **_each("torch.cuda", "bool", "is_initialized is_bf16_supported"),
    **_each("torch.cuda", "object", "current_stream default_stream get_device_properties"),
    **_each("torch.cuda", "context", "stream"),
    **_each("torch.cuda", "none", "init ipc_collect set_stream"),
    **_each("torch.backends.cudnn", "bool", "is_available is_acceptable"),
    **_each("torch.backends.cuda", "bool", "is_built flash_sdp_enabled math_sdp_enabled mem_efficient_sdp_enabled"),
    "torch.backends.cuda.sdp_kernel": "context",
    "torch.nn.attention.sdpa_kernel": "context",
    "torch.func.functional_call": "any",
    "torch.utils.data.get_worker_info": "any",
}

CLASSES: dict[str, str | Choices] = {
    **_each(
        "torch", "tensor", "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor"
    ),
    **_each("torch", "tensor", "IntTensor LongTensor BoolTensor"),
    **_each(
        "torch.cuda", "tensor", "FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor"
    ),
    **_each("torch.cuda", "tensor", "IntTensor LongTensor BoolTensor"),
    **_each("torch.nn", "tensor", "Parameter Buffer UninitializedParameter UninitializedBuffer"),
    **_each("torch.nn.parameter", "tensor", "Parameter Buffer UninitializedParameter UninitializedBuffer"),
    **_each("torch", "storage", "UntypedStorage TypedStorage FloatStorage"),
    **_each("torch", "context", "no_grad enable_grad set_grad_enabled inference_mode autocast"),
    **_each(
        "torch.autograd",
        "context",
        "no_grad enable_grad set_grad_enabled inference_mode detect_anomaly set_detect_anomaly",
    ),
    **_each("torch.amp", "context", "autocast"),
    **_each("torch.cuda.amp", "context", "autocast"),
    **_each("torch.cpu.amp", "context", "autocast"),
    **_each("torch.cuda", "context", "device device_of"),
    **_each("torch.profiler", "context", "record_function profile"),
    **_each("torch.autograd.profiler", "context", "record_function profile emit_nvtx"),
    **_each("torch.random", "context", "fork_rng"),
    **_each("torch", "object", "finfo iinfo Stream Event"),
    **_each("torch.cuda", "object", "Event Stream CUDAGraph"),
    "torch.device": "device",
    "torch.Size": "size",
    "torch.Generator": "generator",
    "torch.nn.utils.rnn.PackedSequence": "packed",
}
