"""Whether ftexec opens the GPU: one step, and all that it says of device and libraries."""
import artifacts
import runner
from part import Part


def opening(context):
    def run():
        plan = context.made.plan("gpt2-bf16-no_shard")
        said = runner.execute(context, [context.ftexec, plan, f"--data={context.text}", "--steps=1", "--device=cuda",
                                        "--progress=off"])
        return "", {"output": said}
    yield runner.attempt(context, "ftexec opens the GPU and makes a step", run)


PARTS = (Part("opening", run=1, seconds=120, rows=opening, alone=True, opened=False, plans=artifacts.plans_of_presets),)
