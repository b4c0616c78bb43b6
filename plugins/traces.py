"""Acceptance as measured and published, by method, model and task: presets, each with its source."""

from scenario import Preset, hookimpl

BENCH = "https://specdecode-bench.github.io/, traces"
EAGLE = "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench"
LEVIATHAN = "Leviathan, Kalman, Matias 2023, arXiv:2211.17192, tables 3 and 4"
PEAGLE = "P-EAGLE, vLLM blog"

# Name, method, what the rates are, the rates by position, source. Conditional: given that those before were accepted.
RATES = (
    ("eagle-3-llama-3.1-8b-gsm8k", "eagle-3", "conditional", ".661/.650/.633/.653/.621/.649/.650", f"{BENCH} with 7 drafts, GSM8K"),
    ("eagle-3-llama-3.1-8b-cnn-dm", "eagle-3", "conditional", ".631/.625/.640/.660/.679/.725/.721", f"{BENCH} with 7 drafts, CNN/DM"),
    ("eagle-3-llama-3.1-8b-sharegpt", "eagle-3", "conditional", ".597/.587/.638/.686/.728/.751/.755", f"{BENCH} with 7 drafts, ShareGPT"),
    ("eagle-3-llama-3.1-8b-instructcoder", "eagle-3", "conditional", ".594/.629/.685/.741/.764/.800/.783",
     f"{BENCH} with 7 drafts, InstructCoder"),
    ("eagle-3-llama-3.1-8b-gsm8k-3", "eagle-3", "conditional", ".673/.653/.640", f"{BENCH} with 3 drafts, GSM8K"),
    ("eagle-3-llama-3.1-8b-cnn-dm-3", "eagle-3", "conditional", ".648/.639/.651", f"{BENCH} with 3 drafts, CNN/DM"),
    ("eagle-3-llama-3.1-8b-sharegpt-3", "eagle-3", "conditional", ".621/.614/.660", f"{BENCH} with 3 drafts, ShareGPT"),
    ("eagle-3-llama-3.1-8b-instructcoder-3", "eagle-3", "conditional", ".630/.669/.710", f"{BENCH} with 3 drafts, InstructCoder"),
    ("eagle-3-minimax-m3", "eagle-3", "marginal", ".76/.56/.43", "vLLM blog on AMD and EAGLE-3, SPEED-Bench"),
    ("eagle-3-minicpm3", "eagle-3", "marginal", ".58/.34/.22/.15/.11", "vLLM pull request 24243"),
    ("eagle-vicuna-7b", "eagle", "conditional", ".79/.74/.72/.73/.67", f"{EAGLE}, Vicuna 7B"),
    ("eagle-vicuna-13b", "eagle", "conditional", ".79/.74/.72/.74/.70", f"{EAGLE}, Vicuna 13B"),
    ("eagle-vicuna-33b", "eagle", "conditional", ".74/.69/.67/.67/.66", f"{EAGLE}, Vicuna 33B"),
    ("eagle-llama2-chat-7b", "eagle", "conditional", ".76/.69/.67/.68/.68", f"{EAGLE}, LLaMA2-Chat 7B"),
    ("eagle-llama2-chat-13b", "eagle", "conditional", ".77/.69/.69/.70/.71", f"{EAGLE}, LLaMA2-Chat 13B"),
    ("mtp-deepseek-v4", "mtp", "marginal", ".7694/.3807", "vLLM pull request 41044, random prompts"),
    ("mtp-deepseek-v4-flash", "mtp", "marginal", ".7002/.2874", "vLLM pull request 41044, random prompts, temperature 1"),
    ("mtp-multi-layer-gsm8k", "mtp-modules", "marginal", ".7568/.6011/.4976/.4113/.3538/.2980/.2608/.2229",
     "vLLM pull request 48892, GSM8K"),
    ("mtp-qwen3.6-27b", "mtp", "marginal", ".917/.837/.648/.538/.451/.348", "club-3090 issue 105, a live log"),
    ("mtp-gemma4-26b-a4b", "mtp", "marginal", ".844/.599/.385/.271", "spark-vllm-docker issue 343, a live log"),
)  # fmt: skip

# Name, share of rounds with a match, conditional rates over all rounds: the first is divided by the share of rounds with a match.
NGRAM = (
    ("ngram-llama-3.1-8b-gsm8k", 0.2, ".075/.562/.597/.636/.710/.697/.715", "GSM8K"),
    ("ngram-llama-3.1-8b-cnn-dm", 0.4, ".113/.719/.755/.782/.798/.810/.822", "CNN/DM"),
    ("ngram-llama-3.1-8b-sharegpt", 0.2, ".118/.764/.791/.853/.870/.882/.896", "ShareGPT"),
    ("ngram-llama-3.1-8b-instructcoder", 0.8, ".266/.878/.924/.942/.939/.963/.925", "InstructCoder"),
)  # fmt: skip

# Name, alpha, draft cost (None: not published), pair of models.
PAIRS = (
    ("t5-small-for-t5-xxl-translation", 0.75, 0.02, "T5-small for T5-XXL, English to German, greedy"),
    ("t5-base-for-t5-xxl-translation", 0.8, 0.04, "T5-base for T5-XXL, English to German, greedy"),
    ("t5-large-for-t5-xxl-translation", 0.82, 0.11, "T5-large for T5-XXL, English to German, greedy"),
    ("t5-small-for-t5-xxl-summaries", 0.65, 0.02, "T5-small for T5-XXL, CNN/DM, greedy"),
    ("t5-base-for-t5-xxl-summaries", 0.73, 0.04, "T5-base for T5-XXL, CNN/DM, greedy"),
    ("t5-large-for-t5-xxl-summaries", 0.74, 0.11, "T5-large for T5-XXL, CNN/DM, greedy"),
    ("lamda-100m-for-lamda-137b", 0.61, None, "LaMDA 100M for LaMDA 137B, greedy"),
    ("lamda-2b-for-lamda-137b", 0.71, None, "LaMDA 2B for LaMDA 137B, greedy"),
    ("lamda-8b-for-lamda-137b", 0.75, None, "LaMDA 8B for LaMDA 137B, greedy"),
)  # fmt: skip

# Name, method, drafts, tokens per round with the bonus, task.
LENGTHS = (
    ("eagle-3-gpt-oss-20b-humaneval", "eagle-3", 3, 2.65, "HumanEval"),
    ("eagle-3-gpt-oss-20b-mt-bench", "eagle-3", 3, 2.70, "MT-Bench"),
    ("parallel-draft-gpt-oss-20b-humaneval", "parallel-draft", 7, 3.94, "HumanEval"),
    ("parallel-draft-gpt-oss-20b-speed-bench", "parallel-draft", 7, 3.38, "SPEED-Bench"),
    ("parallel-draft-gpt-oss-20b-mt-bench", "parallel-draft", 7, 3.70, "MT-Bench"),
)  # fmt: skip


def written(kind: str, rates: list[float]) -> str:
    """Rates as a profile is written in one text."""
    return ("" if kind == "marginal" else f"{kind}:") + "/".join(f"{rate:.12g}" for rate in rates)


@hookimpl
def scenario_presets():
    for name, method, kind, text, source in RATES:
        rates = [float(rate) for rate in text.split("/")]
        yield Preset(name, method, {"acceptance": written(kind, rates), "gamma": len(rates)}, f"{kind.title()} rates by position.", source)
    for name, hits, text, task in NGRAM:
        first, *rates = (float(rate) for rate in text.split("/"))
        yield Preset(name, "ngram", {"hit_rate": hits, "acceptance": written("conditional", [first / hits, *rates]), "gamma": 7},
                     "Conditional rates by position, given a match.", f"{BENCH} with 7 drafts, {task}; matches: its simulator")  # fmt: skip
    for name, alpha, cost, pair in PAIRS:
        values = {"alpha": alpha} if cost is None else {"alpha": alpha, "draft_cost": cost}
        yield Preset(name, "small-model", values, pair, LEVIATHAN)
    for name, method, gamma, length, task in LENGTHS:
        yield Preset(name, method, {"acceptance_length": length, "measured_gamma": gamma, "gamma": gamma}, f"Acceptance length, {task}.", PEAGLE)
