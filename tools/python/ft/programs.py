"""The programs of ft (ftc, ftrun, ftexec, ftckpt) as functions: what they say on the command line, as keywords and dicts."""
import json
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import threading

from .errors import Error, ProgramError

FOLDER = None


def use_programs(folder):
    """Takes the programs from a folder (build/bin) rather than from PATH; None: from PATH again. ProgramError when it has no ftc."""
    global FOLDER
    FOLDER = None if folder is None else pathlib.Path(folder).resolve()
    if FOLDER is not None:
        program("ftc")


def program(name):
    """Its path: in the folder of use_programs, else that which came with this package, else on PATH. ProgramError when it is not there."""
    found = shutil.which(name, path=str(FOLDER)) if FOLDER else shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        where = f"in {FOLDER}" if FOLDER else "on PATH"
        raise ProgramError(f"there is no {name} {where}; install ft (docs/install.md), or build it (make) and name its folder: ft.use_programs(\"build/bin\")")
    return found


def flags(options):
    """micro_steps=2 as --micro-steps=2; True and False as on and off; lists with commas; None is left out."""
    words = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(each) for each in value)
        words.append(f"--{name.replace('_', '-')}={value}")
    return words


def run(*command):
    """What a program prints. ProgramError with what it says when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise failed(command[0], done.returncode, done.stderr or done.stdout)
    return done.stdout


def failed(name, status, text):
    return ProgramError(text.strip() or f"{os.path.basename(str(name))} ended with status {status}", status)


def as_file(model, folder):
    """The path of a model: of an Exported or a text one that is written into a folder."""
    text = getattr(model, "text", model if isinstance(model, str) and "\n" in model else None)
    if text is None:
        return pathlib.Path(model)
    path = pathlib.Path(folder) / "model.mlir"
    path.write_text(text)
    return path


def compile(model, plan="plan.bin", *, strategy="full_shard", **options):
    """`ftc compile`: the training step of a model as a plan. Returns the plan's path.

    model    what ft.export gave, the path of a model.mlir, or its text
    options  those of `ftc compile --help`: micro_steps=2, remat="budget:2GB", mixed_precision="bf16" ...
    ProgramError where ftc refuses the model or an option.
    """
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        run(program("ftc"), "compile", as_file(model, folder), *flags({"strategy": strategy, **options}), "-o", plan)
    return pathlib.Path(plan)


def explain(plan, **options):
    """`ftc explain --json`: what a plan costs each rank, as a dict (bytes by class, traffic, FLOPs, seconds on a target).

    plan     a plan, or a model as for compile, with its options (strategy="full_shard")
    options  those of `ftc explain --help`: world_size=8, target="h100-ib" ...
    """
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        return json.loads(run(program("ftc"), "explain", as_file(plan, folder), *flags(options), "--json"))


def tune(model, *, save=None, **options):
    """`ftc tune --json`: the fastest ways to train a model on a number of ranks within their memory, as a dict: best (ten rows, each with its
    settings, step_seconds, device_bytes ...), front, rejected; with several world_sizes, as [8, 64], a list of them, of which one that cannot be has the
    reason in refused, and nothing else.

    model    as for compile
    save     a train.yaml to write the first row to, for compile(..., config=save, strategy=None)
    options  those of `ftc tune --help`: world_size=64, target="h100-ib", memory="75GiB", global_batch=512 ...
    """
    written = [] if save is None else ["-o", save]
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        return json.loads(run(program("ftc"), "tune", as_file(model, folder), *flags(options), "--json", *written))


def report(plan, page="report.html", **options):
    """`ftc report`: what explain says as a page for a browser. Returns the page's path.

    plan     as for explain
    options  those of `ftc report --help`: world_size=8, target="h100-ib", run="metrics.jsonl", trace="trace.json" ...
    """
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        run(program("ftc"), "report", as_file(plan, folder), *flags(options), "-o", page)
    return pathlib.Path(page)


def train(plan, data, *, ranks=1, **options):
    """`ftrun` of `ftexec`: trains on this host, and yields a dict for each line of metrics (step, loss, grad_norm, ...) when it is written.

    plan     the path of a plan
    data     what --data takes: a file, or several as a list
    ranks    processes that train
    options  those of `ftexec --help`: steps=100, lr=1e-3, init="weights.safetensors", checkpoint_dir="runs/a", save_weights="w.safetensors" ...
    Ending the loop early ends the run (as SIGTERM does: it saves where it writes checkpoints). ProgramError where the run fails.
    """
    command = [program("ftrun"), "--standalone", f"--nproc-per-node={ranks}", program("ftexec"), plan]
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        pipe, log = os.path.join(folder, "metrics"), os.path.join(folder, "log")
        os.mkfifo(pipe)
        options = {"data": data, "progress": "off", **options, "metrics": pipe}
        with open(log, "wb") as output:
            process = subprocess.Popen([str(word) for word in [*command, *flags(options)]], stdout=output, stderr=subprocess.STDOUT)
        yield from lines_of(process, pipe)
        if process.returncode:
            raise failed("ftrun", process.returncode, pathlib.Path(log).read_text(errors="replace")[-4000:])


def lines_of(process, pipe):
    """Lines of a run's metrics as they come, until it has ended."""
    keeper = os.open(pipe, os.O_RDWR)  # a writer of our own, until the run has ended, whether it wrote anything or not
    ended = threading.Thread(target=lambda: (process.wait(), os.close(keeper)))
    ended.start()
    try:
        with open(pipe) as text:
            for line in text:
                yield json.loads(line)
    finally:
        if process.poll() is None:
            process.terminate()
        ended.join()


def load_checkpoint(module, path):
    """Weights of a run into a torch.nn.Module that was exported: of --save-weights' file, of a checkpoint, or of the newest in a folder of them.

    Returns the names of the module's parameters that it does not hold, which stay as they are (those that the loss does not depend on). Error
    when it holds others than the module's, or of other shapes.
    """
    import torch
    from safetensors.torch import load_file
    with tempfile.TemporaryDirectory(prefix="ft-") as folder:
        path = pathlib.Path(path)
        if path.is_dir():
            run(program("ftckpt"), "convert", path, f"{folder}/weights", "--to=hf")
            files = sorted(pathlib.Path(folder, "weights").glob("*.safetensors"))
        else:
            files = [path]
        weights = {name: tensor for file in files for name, tensor in load_file(file).items()}
    places = dict(module.named_parameters(remove_duplicate=False))
    unknown = sorted(name for name, tensor in weights.items() if name not in places or places[name].shape != tensor.shape)
    if unknown:
        listed = ", ".join(unknown[:5]) + " ..." * (len(unknown) > 5)
        raise Error(f"{path} has {listed}, which the module has not, or of another shape; load it into the module that was exported")
    with torch.no_grad():
        for name, tensor in weights.items():
            places[name].copy_(tensor)
    loaded = {id(places[name]) for name in weights}
    return [name for name, parameter in module.named_parameters() if id(parameter) not in loaded]
