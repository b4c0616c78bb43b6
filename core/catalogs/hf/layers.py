"""Which kind each layer of a config is: full or windowed attention, a state mixer, dense or routed; and the sizes of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from scenario.catalogs.hf.keys import ConfigKeys

NAMES = {
    "full_attention": "full", "attention": "full", "sliding_attention": "window", "chunked_attention": "window", "global": "full",
    "local": "window", "sliding_window": "window", "swa": "window", "linear_attention": "linear", "mamba": "linear", "mamba2": "linear",
    "*": "full", "M": "linear", "m": "linear", "-": "none+ffn", "E": "none+moe", "mlp": "none+ffn", "moe": "none+moe", "L": "window",
    "G": "full", "full": "full", "sliding": "window", "linear": "linear", "minimax_m2": "full",
}  # fmt: skip


def kinds(reader: ConfigKeys) -> list[str]:
    """The kind of every layer's mixer; with ``+ffn`` or ``+moe`` where the pattern names feed-forward layers too."""
    n, get = reader.layers, reader.get
    pattern = get("layer_types", "layers_block_type", "hybrid_override_pattern", "layer_block_types")
    if pattern is not None:
        reader.used.update(("sliding_window_pattern", "full_attention_interval", "attn_layer_period", "attn_layer_offset", "attn_type_list"))
        listed = list(pattern) if isinstance(pattern, str) else [str(item) for item in pattern]
        unknown = sorted({item for item in listed if item not in NAMES})
        if unknown:
            reader.out.errors.append(f"layer pattern: kinds of layers that are not known: {', '.join(unknown)}")
        return [NAMES.get(item, "full") for item in listed]
    found = ["full"] * n
    types = get("attn_type_list")
    swa = get("hybrid_layer_pattern")
    if types is not None:
        found = ["full" if item else "linear" for item in types]
        if all(kind == "full" for kind in found):
            return found
    elif swa is not None:
        found = ["window" if item else "full" for item in swa]
    elif get("attn_layer_indices") is not None:
        full = set(get("attn_layer_indices"))
        found = ["full" if i in full else "linear" for i in range(n)]
    elif reader.spec.mixer == "mamba1" or (reader.spec.mixer and reader.keys.get("attn_layer_period")):
        period, offset = int(reader.count("attn_layer_period", default=8)), int(reader.count("attn_layer_offset", default=4))
        found = ["full" if i % period == offset else "linear" for i in range(n)]
    elif reader.spec.mixer == "delta":
        every = int(reader.count("full_attention_interval", default=4))
        found = ["full" if (i + 1) % every == 0 else "linear" for i in range(n)]
    else:
        found = _windowed(reader, n)
    return found


def _windowed(reader: ConfigKeys, n: int) -> list[str]:
    spec, get = reader.spec, reader.get
    window = get("sliding_window")
    if spec.windows == "llama4":
        reader.used.update(("no_rope_layers", "attention_chunk_size"))
        places = reader.keys.get("no_rope_layers")
        if isinstance(places, Sequence) and places and len(places) == n:
            return ["window" if item else "full" for item in places]
        every = int(reader.count("no_rope_layer_interval", default=4))
        return ["full" if (i + 1) % every == 0 else "window" for i in range(n)]
    pattern = get("sliding_window_pattern", "_sliding_window_pattern")
    if isinstance(pattern, str) and pattern:
        return [("window" if pattern[i % len(pattern)] == "L" else "full") for i in range(n)]
    if not window:
        return ["full"] * n
    if spec.windows == "qwen":
        if not reader.flag("use_sliding_window"):
            return ["full"] * n
        first = int(reader.count("max_window_layers", default=n))
        return ["full" if i < first else "window" for i in range(n)]
    if spec.windows == "alternate":
        return ["window" if i % 2 == 0 else "full" for i in range(n)]
    if isinstance(pattern, int) and pattern > 1 and spec.windows == "pattern":
        return ["full" if (i + 1) % pattern == 0 else "window" for i in range(n)]
    if spec.windows == "all":
        return ["window"] * n
    reader.out.warnings.append(f"sliding_window {window}: no layer of a {spec.name} model is known to use it; taken as full attention")
    return ["full"] * n


def windows(reader: ConfigKeys, found: list[str]) -> None:
    """The window of sliding layers; one as long as the context is none."""
    count = sum(kind.startswith("window") for kind in found)
    size = reader.count("sliding_window", "sliding_window_size", "attention_chunk_size") if count else 0
    reader.used.update(("sliding_window", "sliding_window_size", "attention_chunk_size", "use_sliding_window", "swa_rope_theta"))
    longest = reader.get("max_position_embeddings", "n_positions")
    if count and not size:
        reader.out.errors.append(f"{count} layers have sliding windows, and sliding_window is missing")
    same_sizes = not reader.out.fields.get("window_head_dim")
    if count and same_sizes and isinstance(longest, int | float) and size >= longest:
        for index, kind in enumerate(found):
            found[index] = kind.replace("window", "full")
        return
    reader.put("window_tokens", size if count else 0, "sliding_window")
    reader.put("window_layers", count, "layers of the pattern with a sliding window")
    if count and reader.get("attention_chunk_size"):
        reader.out.warnings.append("attention_chunk_size: chunks are counted as a sliding window of their length, their upper bound")
    if count and reader.get("swa_num_key_value_heads"):
        reader.put("window_kv_heads", reader.count("swa_num_key_value_heads"), "swa_num_key_value_heads")
        if reader.count("swa_num_attention_heads") not in (0, reader.out.fields["heads"]):
            reader.out.errors.append("swa_num_attention_heads: sliding layers with another number of query heads cannot be computed")
        if reader.count("swa_head_dim") not in (0, reader.out.fields.get("head_dim", 0)):
            reader.out.errors.append("swa_head_dim: together with value heads of another width cannot be computed")
        reader.used.update(("swa_num_attention_heads", "swa_head_dim", "swa_v_head_dim"))
    if not count:
        for name in ("window_head_dim", "window_kv_heads"):
            reader.out.fields.pop(name, None)


def mixers(reader: ConfigKeys, found: Sequence[str]) -> None:
    """Sizes of linear-attention and state-space layers."""
    count = sum(kind.startswith("linear") for kind in found)
    spec, fields, n = reader.spec, reader.out.fields, reader.count
    if not count:
        return
    if not spec.mixer:
        reader.out.errors.append(f"{count} layers are not attention, and the {spec.name} family has no known mixer")
        return
    hidden = fields["hidden"]
    reader.put("linear_layers", count, "layers of the pattern without attention")
    if spec.mixer == "delta":
        vh, vd = n("linear_num_value_heads", needed=True), n("linear_value_head_dim", needed=True)
        kh, kd = n("linear_num_key_heads", needed=True), n("linear_key_head_dim", needed=True)
        values, keys = vh * vd, 2 * kh * kd
        sizes = {"linear_inner": (values, "linear_num_value_heads x linear_value_head_dim"),
                 "linear_keys": (keys, "2 x linear_num_key_heads x linear_key_head_dim"),
                 "linear_projection": (2 * values + keys + 2 * vh, "values and their gate, keys and queries, two gates per head"),
                 "linear_state_dim": (kd, "linear_key_head_dim"), "linear_conv": (n("linear_conv_kernel_dim", needed=True), "kernel"),
                 "linear_extra_params": (2 * vh + vd, "decay rate and step per head, norm")}  # fmt: skip
    elif spec.mixer == "mamba2":
        heads = n("mamba_n_heads", "mamba_num_heads", needed=True)
        head = n("mamba_d_head", "mamba_head_dim")
        inner = heads * head if head else n("mamba_expand", "expand", default=2) * hidden
        reader.used.update(("mamba_expand", "expand"))
        groups, state = n("mamba_n_groups", "n_groups", default=1), n("mamba_d_state", "ssm_state_size", needed=True)
        keys, conv = 2 * groups * state, n("mamba_d_conv", "conv_kernel", default=4)
        bias = reader.flag("mamba_conv_bias", "use_conv_bias", default=True)
        if reader.flag("mamba_proj_bias"):
            reader.out.warnings.append("mamba_proj_bias: the mixers' projection biases are left out")
        sizes = {"linear_inner": (inner, "Mamba-2 heads x head width"), "linear_keys": (keys, "2 x groups x state"),
                 "linear_projection": (2 * inner + keys + heads, "values and their gate, B and C, a step per head"),
                 "linear_state_dim": (state, "state size"), "linear_conv": (conv, "convolution kernel"),
                 "linear_extra_params": (3 * heads + inner + bias * (inner + keys), "A, D and step bias per head, norm, convolution bias")}  # fmt: skip
    elif spec.mixer == "mamba1":
        inner, state = n("mamba_expand", default=2) * hidden, n("mamba_d_state", default=16)
        given = reader.get("mamba_dt_rank", default="auto")
        rank = float(-(-hidden // 16)) if given == "auto" else n("mamba_dt_rank")
        bias = reader.flag("mamba_conv_bias", default=True)
        extra = inner * (rank + 2 * state) + rank * inner + inner + inner * state + inner + rank + 2 * state + bias * inner
        sizes = {"linear_inner": (inner, "mamba_expand x hidden"), "linear_projection": (2 * inner, "values and their gate"),
                 "linear_state_dim": (state, "mamba_d_state"), "linear_conv": (n("mamba_d_conv", default=4), "mamba_d_conv"),
                 "linear_extra_params": (extra, "B, C and step projections, A, D, norms, biases")}  # fmt: skip
    else:  # lightning attention
        inner = fields["heads"] * fields["head_dim"]
        sizes = {"linear_inner": (inner, "heads x head_dim"), "linear_projection": (4 * inner, "query, key, value and output gate"),
                 "linear_keys": (2 * inner, "keys and queries"), "linear_state_dim": (fields["head_dim"], "head_dim"),
                 "linear_extra_params": (inner, "norm")}  # fmt: skip
    for name, (value, how) in sizes.items():
        reader.put(name, value, how)
    kept = str(reader.get("mamba_ssm_cache_dtype", "mamba_ssm_dtype", default=""))
    if kept == "float32":
        reader.put("linear_state_bits", 32, "state kept in float32")
    else:
        reader.out.warnings.append("the state of linear layers is taken as 16 bits per value: linear_state_bits: 32 where the engine keeps float32")


def experts(reader: ConfigKeys, found: Sequence[str], ffn: float) -> float:
    """The mixture of experts; returns how many there are."""
    n, spec = reader.count, reader.spec
    count = n("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
    if spec.name == "gemma4" and not reader.flag("enable_moe_block"):
        count = 0
    top = n("num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_k", "moe_topk", "num_experts_per_token", "num_selected_experts")
    reader.used.update(("enable_moe_block", "first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers",
                        "interleave_moe_layer_step", "moe_layers", "expert_layer_period", "expert_layer_offset", "mlp_layer_types",
                        "shared_intermediate_size", "use_routing_bias", "intermediate_size_mlp"))  # fmt: skip
    if count <= 1:
        return 0
    if not top:
        reader.out.errors.append("there are experts, and how many work on a token (num_experts_per_tok) is missing")
    layers = moe_layers(reader, found)
    width = n("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size") or (ffn if spec.expert_ffn_is_ffn else 0)
    if not width and layers:
        reader.out.errors.append("there are experts, and moe_intermediate_size is missing")
    reader.put("moe_layers", layers, "layers whose feed-forward network is routed")
    reader.put("experts", count, "number of routed experts")
    reader.put("experts_per_token", top, "experts per token")
    reader.put("expert_ffn", width, "moe_intermediate_size" if reader.keys.get("moe_intermediate_size") else "intermediate_size")
    if spec.expert_bias:
        reader.put("expert_bias", 1, f"the {spec.name} family's experts have biases")
    biased = spec.router_bias or reader.get("topk_method") == "noaux_tc" or reader.flag("use_routing_bias", "moe_use_aux_free",
                                                                                        "moe_router_enable_expert_bias")  # fmt: skip
    reader.put("router_bias", biased or spec.name == "gemma4", "a bias or scale per expert in the router")
    shared = n("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
    wide = n("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size")
    if spec.name == "gemma4":  # a dense network beside the experts in every layer
        shared, wide = 1, ffn
    if spec.name == "llama4":
        shared = 1
    reader.put("shared_experts", shared or (1 if wide else 0), "shared experts")
    reader.put("shared_ffn", wide * max(shared, 1) if wide and wide * max(shared, 1) != shared * width else 0, "their width together")
    if wide and spec.name in ("qwen2_moe", "qwen3_next", "qwen3_5"):
        reader.put("shared_gate", 1, f"the {spec.name} family gates the shared expert")
    return count


def moe_layers(reader: ConfigKeys, found: Sequence[str]) -> int:
    """How many layers are routed."""
    n, keys, layers = reader.count, reader.keys, reader.layers
    if any(kind.endswith("+moe") for kind in found):
        return sum(kind.endswith("+moe") for kind in found)
    if any("+" in kind for kind in found):
        return 0
    listed = keys.get("mlp_layer_types")
    if isinstance(listed, Sequence) and listed:
        return sum(str(item) in ("sparse", "moe") for item in listed)
    if isinstance(keys.get("moe_layers"), Sequence):
        return len(keys["moe_layers"])
    if reader.spec.name == "llama4":
        return layers // int(n("interleave_moe_layer_step", default=1) or 1)
    if keys.get("expert_layer_period") or reader.spec.mixer == "mamba1":
        period, offset = int(n("expert_layer_period", default=2)), int(n("expert_layer_offset", default=1))
        return sum(i % period == offset for i in range(layers))
    if keys.get("moe_layer_start_index") is not None:
        start, end = int(n("moe_layer_start_index")), int(keys.get("moe_layer_end_index") or layers - 1)
        end = layers - 1 if end < 0 else end
        step = int(n("moe_layer_interval", default=1) or 1)
        reader.used.update(("moe_layer_end_index", "moe_layer_interval"))
        return sum((i + 1) % step == 0 for i in range(layers) if start <= i <= end)
    freq = keys.get("moe_layer_freq")
    if isinstance(freq, Sequence) and not isinstance(freq, str):
        return sum(bool(item) for item in freq)
    first = int(n("first_k_dense_replace"))
    step = int(freq or n("decoder_sparse_step") or 1)
    dense = set(keys.get("mlp_only_layers") or [])
    if keys.get("decoder_sparse_step"):
        return sum(i not in dense and (i + 1) % step == 0 for i in range(layers))
    return sum(i >= first and i % step == 0 and i not in dense for i in range(layers))


def dense_width(reader: ConfigKeys, ffn: float, routed: float) -> float:
    """The inner width of the dense layers."""
    if reader.spec.name == "llama4":
        return reader.count("intermediate_size_mlp") or ffn
    if reader.spec.name == "granitemoehybrid" and not routed:
        return reader.count("shared_intermediate_size") or ffn
    return ffn
