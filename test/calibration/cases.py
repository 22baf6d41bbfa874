"""What is measured: few training steps in which every pair of model, ranks, strategy and extra occurs, a third of them over an emulated
link, and groups that differ in their strategy alone."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import covering  # noqa: E402

# A step takes some tenths of a second. Widths of 200, 328 and 448 are none that calibration times.
GPT2 = ("--preset=124m", "--layers=1", "--seq=64", "--batch=2")
MODELS = {
    "gpt2-124m-wide": ("gpt2", *GPT2),
    "char-gpt": ("gpt2", "--preset=debug", "--hidden=384", "--heads=6", "--ffn=1536", "--layers=3", "--seq=256", "--context=256", "--batch=2"),
    "llama": ("llama", "--preset=debug", "--hidden=512", "--heads=8", "--kv-heads=8", "--ffn=1376", "--layers=2", "--seq=256", "--context=256", "--batch=2"),
    "llama3": ("llama", "--preset=debug", "--hidden=448", "--heads=7", "--kv-heads=1", "--ffn=1568", "--layers=2", "--seq=512", "--context=512", "--batch=1",
               "--vocab=8192"),
    "free-transformer": ("free_transformer", "--preset=debug", "--hidden=328", "--heads=4", "--kv-heads=2", "--ffn=880", "--layers=4", "--seq=256",
                         "--context=256", "--batch=2"),
    "qwen3-imported": {"hidden_size": 200, "intermediate_size": 600, "num_hidden_layers": 6, "num_attention_heads": 5, "num_key_value_heads": 5,
                       "head_dim": 40, "vocab_size": 256, "max_position_embeddings": 256,
                       "layer_types": ["full_attention"] * 6, "max_window_layers": 6},
}
OPTIONS = {
    "model": tuple(MODELS),
    "ranks": (1, 2),
    "strategy": ("no_shard", "zero1", "shard_grad_op", "full_shard"),
    "extra": ("none", "remat", "offload", "micro-steps", "bf16"),
}
EXTRAS = {"none": (), "remat": ("--remat=full",), "offload": ("--offload=optimizer",), "micro-steps": ("--micro-steps=2",),
          "bf16": ("--mixed-precision=bf16",)}
RANKED = ("char-gpt", "llama")  # each with all strategies, on two ranks over the link
LINK = "4,100"
MOST = 60


def reads_text(case):
    """Whether bytes are its tokens; else its vocabulary is of 8192 ids at least."""
    return case["model"] not in ("gpt2-124m-wide", "llama3")


def name(case):
    return "/".join([case["model"], f"{case['ranks']}r", case["strategy"], case["extra"]] + (["link"] if case["link"] else []))


def all_cases(most=MOST):
    ranked = [{"model": model, "ranks": 2, "strategy": strategy, "extra": "none", "link": True, "group": model}
              for model in RANKED for strategy in OPTIONS["strategy"]]
    rows = covering.covering_rows(OPTIONS)
    linked = [row for row in rows if row["ranks"] == 2]
    # With those that are ranked a third.
    wanted = max(0, (len(rows) + len(ranked)) // 3 - len(ranked))
    over_link = {id(row) for row in linked[:: max(1, len(linked) // max(1, wanted))][:wanted]}
    cases = ranked + [{**row, "link": id(row) in over_link, "group": None} for row in rows]
    return cases[:most]


def model_file(ftc, case, folder):
    """model.mlir of a case's model, made once."""
    options, path = MODELS[case["model"]], folder / f"{case['model']}.mlir"
    if path.exists():
        return path
    if isinstance(options, dict):
        config = json.loads((pathlib.Path(__file__).resolve().parents[1] / "hf_configs/v5/qwen3.json").read_text())
        source = folder / case["model"]
        source.mkdir(exist_ok=True)
        (source / "config.json").write_text(json.dumps({**config, **options}))
        ftc("import", source, "--batch=4", "--seq=256", "-o", path)
    else:
        ftc("model", *options, "-o", path)
    return path
