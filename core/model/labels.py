"""What people call columns whose names are short for something; the symbols are the article's."""

LABELS = {
    "tpot_ms": "TPOT", "ttft_ms": "TTFT", "usd_per_million_tokens": "$ per 1M tokens", "usd_per_hour": "$ per GPU-hour",
    "usd_low": "$ per 1M tokens, low", "usd_high": "$ per 1M tokens, high",
    "kv_gb": "KV cache", "mfu": "MFU", "mbu": "MBU", "gpu": "GPU", "gpus": "GPUs", "kv": "KV cache format",
    "weights": "weight format", "params": "parameters", "active_params": "active parameters",
    "gemm_params": "parameters in arithmetic", "tokens_per_s": "tokens/s", "tokens_per_s_per_gpu": "tokens/s per GPU",
    "kv_bytes_per_token": "KV cache per token", "flops_per_token": "FLOPs per token", "weight_gb": "weights",
    "memory_gb": "memory", "max_batch": "largest batch", "achieved_mfu": "MFU reached", "step_ms": "decode step",
    "round_ms": "round", "baseline_ms": "baseline step T(B)", "verify_ms": "verify pass T((gamma+1)B)",
    "draft_cost": "draft cost c", "alpha": "acceptance alpha", "gamma": "draft tokens gamma",
    "tokens_per_round": "tokens per round E", "free_batch": "turning batch, ridge / (gamma+1)", "ridge": "ridge point",
}  # fmt: skip
"""By column name; a title that a column has of its own comes before it."""


def label(name: str, title: str = "") -> str:
    """What a column is called: its title, its label, else its name in words."""
    return title or LABELS.get(name) or name.replace("_", " ")
