"""Weight-only INT4 (W4A16): weights shrink to about a quarter; arithmetic and KV cache keep their formats."""

from scenario import Column, Method, Parameter, hookimpl

GPTQ = "GPTQ, arXiv:2210.17323; AWQ, arXiv:2306.00978"


@hookimpl
def scenario_methods():
    yield Method(
        name="int4",
        title="Weight-only INT4",
        doc="Weights in 4 bits with a scale and a zero point per group, expanded to BF16 before the arithmetic.",
        source=GPTQ,
        parameters={
            "bits": Parameter(4, 2, 8, "bit", "Bits of one quantized weight.", GPTQ, "integer"),
            "group_size": Parameter(128, 1, 16384, "weights", "Weights that share a scale.", GPTQ, "integer"),
            "scale_bits": Parameter(16, 0, 32, "bit", "Bits of one scale.", GPTQ, "integer"),
            "zero_bits": Parameter(16, 0, 32, "bit", "Bits of one zero point; 0 when symmetric.", GPTQ, "integer"),
            "keep_head": Parameter(0, doc="1 keeps embedding and LM head as stored, as AWQ and GPTQ checkpoints do.",
                                   source=GPTQ, kind="flag"),
        },
        columns={
            "weight_bits": Column("bits + (scale_bits + zero_bits) / group_size", "bit", "4.25 with the defaults."),
            "unquantized_params": Column("keep_head * (embedding_params + lm_head_params)", "parameters",
                                         "Embedding and LM head, when kept."),
        },
    )  # fmt: skip
