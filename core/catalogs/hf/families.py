"""What a config.json leaves unsaid: how each model family fills it in, as the families' published code does.

A config only lists what differs from its class. Whether embeddings are tied, projections have biases or layers have
four norms is then a fact of the family, given here; keys in the config itself always win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Family:
    """The facts of a family that its configs leave out.

    ``bias`` says which projections ``attention_bias`` (or ``bias``) stands for: ``all``, ``qkv``; ``qkv_default`` its value
    when it is not given. ``qk_norm`` is ``head``, ``wide`` or empty. ``norms`` counts norm vectors per layer: a LayerNorm with
    a bias is two. ``expert_ffn_is_ffn``: experts are as wide as intermediate_size. ``defaults`` are values of absent keys.
    """

    name: str
    tied: bool = False
    bias: str = "all"
    qkv_default: bool = False
    o_default: bool = False
    mlp_bias: bool = False
    qk_norm: str = ""
    norms: int = 2
    gated: bool = True
    final_bias: bool = False
    windows: str = ""
    expert_ffn_is_ffn: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    warn: str = ""
    sinks: bool = False
    mixer: str = ""
    defaults: Mapping[str, object] = field(default_factory=dict)


LLAMA = Family("llama")
QWEN2 = Family("qwen2", bias="qkv", qkv_default=True, windows="qwen")
QWEN3 = Family("qwen3", qk_norm="head", windows="qwen")
GEMMA = Family("gemma", tied=True)
DEEPSEEK = Family("deepseek_v2")
LAYER_NORM = Family("gpt", tied=True, qkv_default=True, o_default=True, mlp_bias=True, norms=4, gated=False, final_bias=True)
WIDE = Family("mixtral", windows="all", expert_ffn_is_ffn=True)

SPARSE = "sparse attention is counted as attention to the whole context; its indexer's parameters and cache are left out"

_GEMMA3 = {"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
           "sliding_window_pattern": 6}  # fmt: skip
_MISTRAL = {"num_attention_heads": 32, "num_key_value_heads": 8}

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": replace(LLAMA, name="mistral", windows="all", defaults=_MISTRAL),
    "ministral": replace(LLAMA, name="ministral"),
    "mixtral": WIDE,
    "llama4": replace(LLAMA, name="llama4", windows="llama4", expert_ffn_is_ffn=True),
    "qwen2": QWEN2,
    "qwen2_moe": replace(QWEN2, name="qwen2_moe"),
    "qwen3": QWEN3,
    "qwen3_moe": replace(QWEN3, name="qwen3_moe"),
    "qwen3_next": replace(QWEN3, name="qwen3_next", mixer="delta", defaults={"attn_output_gate": True, "full_attention_interval": 4}),
    "qwen3_5": replace(QWEN3, name="qwen3_5", mixer="delta", defaults={"attn_output_gate": True, "full_attention_interval": 4}),
    "gemma": GEMMA,
    "gemma2": replace(GEMMA, name="gemma2", norms=4, windows="alternate", defaults={"sliding_window": 4096}),
    "gemma3": replace(GEMMA, name="gemma3", norms=4, qk_norm="head", windows="pattern", defaults=_GEMMA3),
    "gemma4": replace(GEMMA, name="gemma4", norms=4, qk_norm="head"),
    "phi": replace(LAYER_NORM, name="phi", tied=False, norms=2),
    "phi3": replace(LLAMA, name="phi3", windows="all"),
    "phimoe": replace(WIDE, name="phimoe", norms=4, final_bias=True),
    "deepseek": replace(LLAMA, name="deepseek"),
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": replace(DEEPSEEK, name="deepseek_v3", router_bias=True),
    "glm_moe_dsa": replace(DEEPSEEK, name="glm_moe_dsa", router_bias=True, warn=SPARSE),
    "gpt_oss": Family("gpt_oss", qkv_default=True, o_default=True, windows="alternate", expert_ffn_is_ffn=True, router_bias=True,
                      expert_bias=True, sinks=True),
    "glm": replace(LLAMA, name="glm", bias="qkv", qkv_default=True),
    "glm4": replace(LLAMA, name="glm4", bias="qkv", norms=4),
    "glm4_moe": replace(LLAMA, name="glm4_moe", bias="qkv", router_bias=True),
    "glm4_moe_lite": replace(DEEPSEEK, name="glm4_moe_lite", router_bias=True),
    "minimax_m2": replace(WIDE, name="minimax_m2", windows="", qk_norm="wide", defaults={"use_qk_norm": True}),
    "minimax": replace(WIDE, name="minimax", windows="", mixer="lightning"),
    "granite": replace(LLAMA, name="granite", tied=False),
    "granitemoe": replace(LLAMA, name="granitemoe", expert_ffn_is_ffn=True),
    "granitemoehybrid": replace(LLAMA, name="granitemoehybrid", tied=True, expert_ffn_is_ffn=True, mixer="mamba2",
                                defaults={"mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_expand": 2, "mamba_d_state": 256,
                                          "mamba_conv_bias": True}),
    "bamba": replace(LLAMA, name="bamba", mixer="mamba2", defaults={"mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_expand": 2,
                                                                    "mamba_d_state": 256, "mamba_conv_bias": True}),
    "jamba": replace(LLAMA, name="jamba", expert_ffn_is_ffn=True, mixer="mamba1",
                     defaults={"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1,
                               "num_experts": 16, "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
                               "mamba_conv_bias": True}),
    "nemotron_h": replace(LLAMA, name="nemotron_h", norms=1, gated=False, mixer="mamba2", router_bias=True),
    "nemotron": replace(LAYER_NORM, name="nemotron", tied=False, qkv_default=False, o_default=False, mlp_bias=False),
    "cohere": replace(LLAMA, name="cohere", tied=True, norms=1, qk_norm="cohere"),
    "cohere2": replace(LLAMA, name="cohere2", tied=True, norms=1, windows="pattern", defaults={"sliding_window_pattern": 4}),
    "olmo": replace(LLAMA, name="olmo", norms=0),
    "olmo2": replace(LLAMA, name="olmo2", qk_norm="wide"),
    "olmo3": replace(LLAMA, name="olmo3", qk_norm="wide", windows="pattern", defaults={"sliding_window_pattern": 4}),
    "olmoe": replace(LLAMA, name="olmoe", qk_norm="wide", expert_ffn_is_ffn=True),
    "starcoder2": replace(LAYER_NORM, name="starcoder2", windows="all"),
    "gpt2": LAYER_NORM,
    "gpt_bigcode": replace(LAYER_NORM, name="gpt_bigcode"),
    "opt": replace(LAYER_NORM, name="opt"),
    "bloom": replace(LAYER_NORM, name="bloom"),
    "falcon": replace(LAYER_NORM, name="falcon", qkv_default=False, o_default=False, mlp_bias=False),
    "gpt_neox": replace(LAYER_NORM, name="gpt_neox", tied=False),
    "stablelm": replace(LLAMA, name="stablelm", norms=4, final_bias=True, bias="qkv"),
    "smollm3": replace(LLAMA, name="smollm3", tied=True),
    "seed_oss": replace(LLAMA, name="seed_oss", bias="qkv", qkv_default=True),
    "hunyuan_v1_dense": replace(LLAMA, name="hunyuan_v1_dense", qk_norm="head"),
    "exaone4": replace(LLAMA, name="exaone4", qk_norm="head", windows="pattern"),
    "internlm2": LLAMA,
    "internlm3": LLAMA,
    "dots1": replace(LLAMA, name="dots1", qk_norm="head", router_bias=True),
    "ernie4_5": replace(LLAMA, name="ernie4_5", tied=True),
    "ernie4_5_moe": replace(LLAMA, name="ernie4_5_moe", tied=True, router_bias=True),
}  # fmt: skip
"""By model_type. Source: the configuration and modelling code of each family, https://github.com/huggingface/transformers."""

ALIASES = {
    "qwen3_vl": "qwen3", "qwen3_vl_moe": "qwen3_moe", "qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", "qwen2_5_omni": "qwen2",
    "qwen3_5_moe": "qwen3_5", "gemma3_text": "gemma3", "gemma4_text": "gemma4", "llama4_text": "llama4", "glm4v": "glm4",
    "glm4v_moe": "glm4_moe", "kimi_k2": "deepseek_v3", "minimax_text_01": "minimax", "minimax_m1": "minimax", "cohere2_vision": "cohere2",
    "mistral3": "mistral", "phi3_v": "phi3", "phi4": "phi3", "phi4mm": "phi3", "nemotron-nas": "nemotron_nas", "granitemoeshared": "granitemoe",
    "ministral3": "ministral", "kimi_k25": "deepseek_v3", "deepseek_v32": "deepseek_v3",
}  # fmt: skip

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a multimodal config keeps its language model."""
INHERITED = ("tie_word_embeddings", "quantization_config", "torch_dtype", "dtype", "vocab_size", "mamba_ssm_dtype")
"""Keys of the outer config that hold for the language model when it does not say otherwise."""
ENCODERS = ("vision_config", "audio_config", "visual", "vision_tower", "img_processor", "embd_layer", "audio_processor", "projector_config")

UNSUPPORTED: dict[str, str] = {
    "num_kv_shared_layers": "layers that re-use the cache of earlier ones",
    "hidden_size_per_layer_input": "per-layer input embeddings",
    "altup_num_inputs": "alternating updates of the residual stream",
    "alibi_bias_max": "MPT's own layout",
    "laurel_rank": "learned augmented residuals",
    "block_configs": "layers that differ one by one",
    "cross_attention_layers": "cross-attention to an encoder",
    "moe_latent_size": "experts in a latent space",
    "linear_attn_config": "Kimi delta attention",
    "shared_kv_groups": "shared key and value groups",
    "is_encoder_decoder": "an encoder",
    "compress_ratios": "compressed attention",
    "hc_mult": "several residual streams",
    "num_hyper_connections": "several residual streams",
    "mlp_layers_to_expand": "layers that differ one by one",
    "zero_expert_num": "experts without parameters",
    "engram_layer_ids": "memory tables looked up per layer",
}
"""Keys whose meaning this version does not compute: an error when they are set."""

WARN: dict[str, str] = {
    "index_topk": SPARSE,
    "index_n_heads": "see index_topk",
    "index_head_dim": "see index_topk",
    "sparse_attention_config": "sparse attention is counted as attention to the whole context",
}

_HARMLESS = """
_name_or_path name_or_path architectures auto_map transformers_version model_type torch_dtype dtype use_cache bos_token_id
eos_token_id pad_token_id unk_token_id sep_token_id decoder_start_token_id initializer_range initializer_factor init_std
attention_dropout hidden_dropout resid_pdrop embd_pdrop attn_pdrop embed_pdrop classifier_dropout ffn_dropout residual_dropout
embedding_dropout dropout hidden_dropout_prob attention_probs_dropout_prob summary_activation summary_first_dropout
summary_proj_to_labels summary_type summary_use_proj rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon
layernorm_epsilon rope_theta rope_scaling rope_parameters rope_local_base_freq global_rope_theta local_rope_theta rope_ratio
rope_interleave rope_interleaved rope_pct rotary_pct rotary_dim rotary_emb_base rope_emb_base partial_rotary_factor
partial_rotary_factors original_max_position_embeddings max_sequence_length seq_length n_ctx model_max_length
position_embedding_type initial_context_length max_position_embeddings pretraining_tp ep_size n_group topk_group norm_topk_prob
routed_scaling_factor scoring_func topk_method aux_loss_alpha seq_aux router_aux_loss_coef router_z_loss_coef output_router_logits
router_jitter_noise input_jitter_noise swiglu_limit swiglu_alpha moe_router_topk_scaling_factor hidden_act hidden_activation
activation_function mlp_hidden_act final_logit_softcapping attn_logit_softcapping query_pre_attn_scalar attention_multiplier
embedding_multiplier logits_scaling logit_scale residual_multiplier scale_emb scale_depth dim_model_base mup_denominator attn_scale
floor_scale attn_temperature_tuning no_rope_layer_interval rope_layers cache_implementation no_rope_layers
use_bidirectional_attention chunk_size_feed_forward output_attentions output_hidden_states return_dict problem_type id2label
label2id is_decoder add_cross_attention tie_encoder_decoder torchscript pruned_heads finetuning_task task_specific_params prefix
tokenizer_class begin_suppress_tokens suppress_tokens keys_to_ignore_at_inference vocab_size_per_layer_input
activation_sparsity_pattern max_window_layers use_mamba_kernels mamba_chunk_size chunk_size mamba_act mamba_hidden_act
time_step_limit time_step_min time_step_max time_step_floor time_step_rank mamba_dt_min mamba_dt_max mamba_dt_init_floor
rescale_prenorm_residual residual_in_fp32 num_logits_to_keep calc_logits_for_entire_prompt normalization_function rescale_every
use_parallel_residual parallel_attn scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn
attention_softmax_in_fp32 scale_attention_softmax_in_fp32 layernorm_full_attention_alpha layernorm_full_attention_beta
layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta full_attn_alpha_factor
full_attn_beta_factor linear_attn_alpha_factor linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor lm_head_multiplier
attn_implementation _attn_implementation _attn_implementation_autoset for_llm_compressor unsloth_version unsloth_fixed
transformers.js_config quantization_config_file use_flash_attn z_loss_coefficient alpha_rope clip_qkv nope_layer_interval
mtp_loss_scaling_factor mamba_ssm_cache_dtype moe_router_load_balancing_type gradient_checkpointing bad_words_ids
cross_attention_hidden_size diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty
length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores
remove_invalid_values return_dict_in_generate temperature tf_legacy_loss top_k top_p typical_p use_bfloat16 repetition_penalty
ignore_index use_unified_vision_chunk router_bias_update_speed use_moe_aux_loss moe_aux_loss_coeff is_causal
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Keys that change neither parameters, bytes nor arithmetic."""

HARMLESS_VALUES = {"mlp_type": "default", "norm_type": "layer_norm", "mamba_proj_bias": False, "rope_type": "default"}
"""Keys that change nothing at this value."""

HARMLESS_ENDINGS = ("_token_id", "_token_index", "_token", "_tokens_per_image", "_processor_type", "_eps", "_dropout", "_dropout_prob", "_pdrop")
