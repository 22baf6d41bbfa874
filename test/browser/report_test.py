"""The page of a report in a real browser: figures, pointer, click and keys."""

import math
import unittest

from reports import MEASURED_MACHINE, Pages, RunPages, short_bytes, short_seconds

ARROW_RIGHT, ARROW_LEFT, ARROW_DOWN, ESCAPE, ENTER, END = "\ue014", "\ue012", "\ue015", "\ue00c", "\ue007", "\ue010"


class Report(RunPages):
    # --- figures ---

    def test_figures_are_those_of_explain(self):
        plan, _ = self.page()
        explained = self.explain(plan, 2)
        cards = [self.browser.text(f"#summary .card:nth-child({i})") for i in (1, 2, 3)]
        self.assertIn(f"arena {short_bytes(explained['arena_bytes'])} a rank", cards[0])
        self.assertIn(short_seconds(explained["step"]["seconds"]), cards[1].splitlines()[1])
        self.assertIn(f"{explained['step']['tokens_per_s_per_rank']:,.0f} tokens/s a rank", cards[1])
        self.assertIn(f"MFU {explained['step']['mfu'] * 100:.1f}%", cards[1])
        step = dict(self.rows("summary", "the step"))
        self.assertEqual(step["arena"], f"{explained['arena_bytes']:,} B")
        self.assertEqual(step["most bytes live at once"], f"{explained['max_live_bytes']:,} B")
        self.assertEqual(step["exposed communication"], short_seconds(explained["step"]["exposed_seconds"]))

    def test_tables_are_those_of_explain(self):
        plan, data = self.page()
        explained = self.explain(plan, 2)
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling"):
            self.section(name)
        by_unit = {row[0]: row for row in self.rows("traffic", "traffic of units")}
        units = {unit["unit"]: unit for unit in explained["traffic"]["by_unit"]}
        self.assertEqual(list(by_unit), ["transformer.embed", "transformer.h.0..1 (2 units, each)", "transformer.head", "scalars and activations"])
        for row, unit in zip(by_unit.values(), ("transformer.embed", "transformer.h.0", "transformer.head", "scalars")):
            self.assertEqual(row[2:], self.transfers(units[unit]))
        saved = self.rows("recomputation", "activations")
        self.assertEqual([row[:4] for row in saved], [[one["choice"], one["value"], f"{one['count']:,}", f"{one['bytes']:,} B"] for one in explained["saved"]])
        scaling = self.rows("scaling", "scaling")
        self.assertEqual([row[0].replace(",", "") for row in scaling], [str(2**i) for i in range(11)])
        for row in scaling[::5]:
            at = self.explain(plan, int(row[0].replace(",", "")))
            self.assertEqual((row[2], row[8]), (short_seconds(at["step"]["seconds"]), short_bytes(at["arena_bytes"])))
        buffers = self.rows("memory", "all buffers")
        self.assertEqual(len(buffers), len(data["plans"][0]["buffers"]["name"]))
        self.assertEqual(sorted(int(row[4].replace(",", "")) for row in buffers), sorted(data["plans"][0]["buffers"]["bytes"]))
        bytes_at = [int(row[1].replace(",", "")) for row in self.rows("memory", "bytes by class at each instruction")]
        self.assertEqual(max(bytes_at), explained["max_live_bytes"])
        kernels = self.rows("kernels", "kernels, those")
        self.assertEqual([row[0] for row in kernels], [one["kernel"] for one in data["plans"][0]["kernels"]])
        self.assertEqual(len(self.rows("time", "instructions of")), len(data["plans"][0]["programs"][2]["instructions"]["opcode"]))

    def transfers(self, traffic):
        """Cells of a row of traffic: each kind of transfer that explain knows, in its order."""
        return [f"{one['bytes']:,} B in {one['count']}" for one in traffic.values() if isinstance(one, dict)]

    def test_matrices_that_one_rank_computes_on_are_traffic_of_their_own(self):
        source, plan = self.shared / "muon.mlir", self.shared / "muon.bin"
        self.check("ftc", "model", "gpt2", "-o", source)
        self.check("ftc", "compile", source, "--strategy=full_shard", "--optimizer=muon", "-o", plan)
        explained = self.explain(plan, 2)["traffic"]
        self.assertGreater(explained["all_to_all"]["bytes"], 0)
        self.show(self.report(plan, "--world-size=2", name="muon.html")[0])
        self.section("traffic")
        unit = next(unit for unit in explained["by_unit"] if unit["all_to_all"]["bytes"] > 0)
        row = next(row for row in self.rows("traffic", "traffic of units") if row[0] == unit["unit"])
        self.assertEqual(row[2:], self.transfers(unit))
        self.assertIn("sent where it is computed on", self.browser.text("#traffic .legend"))

    def test_every_chart_has_a_table(self):
        self.page()
        for name in self.browser.run("return [...document.querySelectorAll('main > section')].map(one => one.id)"):
            self.browser.run("document.getElementById(arguments[0]).scrollIntoView()", name)
            self.until("return document.querySelector('#' + arguments[0] + ' details.table')", name)
            self.assertTrue(self.browser.run("return [...document.querySelectorAll('#' + arguments[0] + ' svg')].every(svg => svg.getAttribute('aria-label'))", name), name)

    def test_a_run(self):
        _, data = self.page()
        self.browser.run("document.getElementById('run').scrollIntoView()")
        self.until("return document.querySelector('#run svg')")
        cards = [self.browser.text(f"#run .card:nth-child({i}) .figure") for i in (1, 2, 3)]
        run = data["run"]
        self.assertEqual(cards, [short_seconds(run["predicted"]["step_ms"] / 1e3), short_seconds(run["measured"]["step_ms"] / 1e3), f"{run['measured']['ratio']:.2f}"])
        rows = self.rows("run", "steps")
        self.assertEqual([row[0] for row in rows], [str(step) for step in run["step"]])
        self.assertAlmostEqual(float(rows[3][1]), run["columns"]["loss"][3], places=3)
        left, top, width, height = self.box("#run svg")
        self.browser.point(left + width - 15, top + height / 2)
        self.assertIn("loss; step 11: ", self.browser.text("#run svg"))
        self.browser.run("document.getElementById('measured').scrollIntoView()")
        self.until("return document.querySelector('#measured svg')")
        self.assertEqual([row[0] for row in self.rows("measured", "kinds of instructions")], [one["title"] for one in data["trace"]["classes"]])
        trace = data["trace"]
        note = self.browser.text("#measured .note")
        self.assertIn(f"2 ranks, {trace['steps']} steps compared, the first {trace['left_out']} left out", note)
        self.assertIn(f"Compute waited {short_seconds(trace['waited']['median'])} in a step", note)
        self.section("time")
        self.assertIn("compute, measured", self.browser.text("#time svg"))

    # --- memory: pointer, click, keys ---

    def live(self, data, program, at):
        """Names and bytes of the buffers that live at an instruction, the largest first."""
        plan = data["plans"][0]
        buffers = plan["buffers"]
        found = [i for i in range(len(buffers["name"])) if buffers["space"][i] == 0 and buffers["bytes"][i] and
                 (buffers["persistent"][i] or buffers["program"][i] == program and buffers["first"][i] <= at <= buffers["last"][i])]
        found.sort(key=lambda i: (-buffers["bytes"][i], i))
        return [(plan["names"][buffers["name"][i]], i) for i in found]

    def over(self, at, fraction=0.5):
        return self.place("#memory svg", "return [chart.x(given[0] + 0.5), chart.margin.top + given[1] * (chart.height - chart.margin.top - chart.margin.bottom)]", at, fraction)

    def test_the_pointer_shows_what_lives(self):
        _, data = self.page()
        self.section("memory")
        program = self.browser.run("return document.querySelector('#memory [data-plan]').chart.program")
        for at in (3, 40, 77):
            self.browser.point(*self.over(at))
            self.pictured()
            heading = self.browser.text("#memory .live-panel h4")
            expected = self.live(data, program, at)
            total = sum(data["plans"][0]["buffers"]["bytes"][i] for _, i in expected)
            self.assertTrue(heading.startswith(f"At instruction {at}, "), heading)
            self.assertIn(f"{len(expected):,} buffers live", heading)
            self.assertIn(f"({total:,} B)", heading)
            shown = self.browser.run("return [...document.querySelectorAll('#memory .live-panel td button')].map(one => one.textContent)")
            self.assertEqual(shown, [name for name, _ in expected][:60])

    def test_a_click_follows_a_buffer(self):
        _, data = self.page()
        self.section("memory")
        program = self.browser.run("return document.querySelector('#memory [data-plan]').chart.program")
        # In the middle of the lowest class: parameters lie there all the time.
        at = 40
        x, y = self.place("#memory svg", "return [chart.x(given[0] + 0.5), chart.y(chart.memory.live[0][given[0]] / 2)]", at)
        self.browser.point(x, y, click=True)
        self.pictured()
        buffers = data["plans"][0]["buffers"]
        name, index = next((name, i) for name, i in self.live(data, program, at) if buffers["class"][i] == 0)
        self.assertEqual(self.browser.text("#memory .followed-panel h4"), f"Followed: {name}")
        self.assertIn(f"{buffers['bytes'][index]:,} B, lives all the time", self.browser.text("#memory .followed-panel"))
        # One of the list, that lives for a while: where it lives is marked, and what touches it is named.
        name, index = next((name, i) for name, i in self.live(data, program, at) if not buffers["persistent"][i])
        self.browser.run("document.querySelector('#memory .live-panel button[data-buffer=\"' + arguments[0] + '\"]').click()", index)
        self.assertEqual(self.browser.text("#memory .followed-panel h4"), f"Followed: {name}")
        first, last = buffers["first"][index], buffers["last"][index]
        marked = self.browser.run("""const chart = document.querySelector('#memory [data-plan]').chart, mark = document.querySelector('#memory svg .followed');
            return [chart.x.invert(+mark.getAttribute('x')), chart.x.invert(+mark.getAttribute('x') + +mark.getAttribute('width'))]""")
        self.assertAlmostEqual(marked[0], first, places=6)
        self.assertAlmostEqual(marked[1], last + 1, places=6)
        box = self.browser.run("""const chart = document.querySelector('#memory [data-plan]').chart, box = document.querySelector('#memory .followed-bytes').getBBox();
            return [chart.x.invert(box.x), chart.x.invert(box.x + box.width)]""")
        self.assertAlmostEqual(box[0], first, places=3)
        self.assertAlmostEqual(box[1], last + 1, places=3)
        instructions = data["plans"][0]["programs"][program]["instructions"]
        touching = [k for k in range(len(instructions["in"])) if index in instructions["in"][k] or index in instructions["out"][k]]
        shown = self.browser.run("return [...document.querySelectorAll('#memory .followed-panel tr')].map(row => parseInt(row.cells[2].textContent))")
        self.assertEqual(shown, touching[:40])
        # Above all that lives there is nothing to follow.
        self.browser.point(*self.over(at, 0.001), click=True)
        self.assertIn("Escape lets go", self.browser.text("#memory .followed-panel"))

    def test_keys(self):
        _, data = self.page()
        self.section("memory")
        chart = "document.querySelector('#memory [data-plan]').chart"
        self.browser.run("document.querySelector('#memory svg').focus()")
        at = self.browser.run(f"return {chart}.at")
        self.browser.press(ARROW_RIGHT, ARROW_RIGHT, ARROW_LEFT)
        self.pictured()
        self.assertTrue(self.browser.text("#memory .live-panel h4").startswith(f"At instruction {at + 1}, "))
        self.browser.press(ENTER)
        self.assertIn("Followed: ", self.browser.text("#memory .followed-panel h4"))
        self.browser.press(ESCAPE)
        self.assertIn("Escape lets go", self.browser.text("#memory .followed-panel"))
        size = self.browser.run(f"return {chart}.memory.size")
        self.browser.press("+")
        begin, end = self.browser.run(f"return {chart}.window")
        self.assertAlmostEqual(end - begin, size / 2, places=6)
        self.browser.press("0")
        self.assertEqual(self.browser.run(f"return {chart}.window"), [0, size])
        self.browser.press(END)
        self.pictured()
        self.assertTrue(self.browser.text("#memory .live-panel h4").startswith(f"At instruction {size - 1}, "))
        # A name of the list keeps the focus when it is followed.
        self.browser.run("document.querySelector('#memory .live-panel button[data-buffer]').focus()")
        focused = "return document.activeElement.dataset.buffer"
        buffer = self.browser.run(focused)
        self.browser.press(ENTER)
        self.assertIn("Followed: ", self.browser.text("#memory .followed-panel h4"))
        self.assertEqual(self.browser.run(focused), buffer)
        self.section("kernels")
        chart = "document.querySelector('#kernels [data-plan]').chart"
        self.browser.run("document.querySelector('#kernels svg').focus()")
        self.browser.press(END)
        last = self.browser.run(f"return {chart}.dots.length") - 1
        self.assertEqual(self.browser.run(f"return {chart}.at"), last)
        self.browser.press(ARROW_LEFT)
        self.assertEqual(self.browser.run(f"return {chart}.at"), last - 1)

    # --- time line and roofline ---

    def test_the_time_line_says_what_runs_and_what_waits(self):
        _, data = self.page()
        self.section("time")
        program = self.browser.run("return document.querySelector('#time [data-plan]').chart.program")
        instructions = data["plans"][0]["programs"][program]["instructions"]
        names = data["plans"][0]["names"]
        middle = "const lane = chart.lanes.findIndex(one => one.name === given[0]); return [chart.x(given[1]), chart.top(lane) + 8]"
        longest = max((k for k in range(len(instructions["opcode"])) if instructions["stream"][k] == 0), key=lambda k: instructions["end"][k] - instructions["begin"][k])
        self.browser.point(*self.place("#time svg", middle, "compute", (instructions["begin"][longest] + instructions["end"][longest]) / 2))
        text = self.browser.text("#time .timeline-panel")
        self.assertIn(f"instruction {longest}, {names[instructions['title'][longest]]}", text)
        self.assertIn(short_seconds((instructions["end"][longest] - instructions["begin"][longest]) / 1e9), text)
        self.assertIn("measured", text)
        # The longest that `compute` stands still.
        until, gaps = 0, []
        for k, stream in enumerate(instructions["stream"]):
            if stream == 0:
                gaps.append((instructions["begin"][k] - until, until, k))
                until = instructions["end"][k]
        gap, since, number = max(gaps)
        self.browser.point(*self.place("#time svg", middle, "compute", since + gap / 2))
        text = self.browser.text("#time .timeline-panel")
        self.assertIn(f"compute stands still for {short_seconds(gap / 1e9)} before instruction {number}, ", text)
        earlier = instructions["after"][number][0]
        self.assertIn(f"what exposes it: {earlier}, {names[instructions['title'][earlier]]}", text)
        self.browser.run("document.querySelector('#time svg').focus()")
        self.browser.press(ARROW_DOWN)
        self.assertTrue(self.browser.text("#time .timeline-panel h4").startswith("gather"))

    def test_the_roofline_names_the_nearest(self):
        _, data = self.page()
        self.section("kernels")
        kernels = [one for one in data["plans"][0]["kernels"] if one["flops"] and one["bytes"] and one["seconds"]]
        for at in (0, len(kernels) // 2, len(kernels) - 1):
            self.browser.run("document.querySelector('#kernels [data-plan]').chart.choose(0)")
            self.browser.point(*self.place("#kernels svg", "return [chart.dots[given[0]].x, chart.dots[given[0]].y]", at))
            text = self.browser.text("#kernels .roofline-panel")
            place = self.browser.run("const dot = document.querySelector('#kernels [data-plan]').chart.dots; return dot.map(one => [one.x, one.y])")
            same = [k for k in range(len(kernels)) if abs(place[k][0] - place[at][0]) < 1.5 and abs(place[k][1] - place[at][1]) < 1.5]
            self.assertTrue(any(text.startswith(kernels[k]["kernel"]) and short_seconds(kernels[k]["total_seconds"]) in text for k in same), text)

    def test_what_is_drawn_stands_at_its_numbers(self):
        """By the ticks of the axes: the top of the stack, the end of the step, the bars, the dots."""
        plan, data = self.page()
        explained = self.explain(plan, 2)
        self.section("memory")

        def at(ticks, value):
            (first, left), (last, right) = ticks[0], ticks[-1]
            return left + (value - first) / (last - first) * (right - left)

        top = self.browser.run("return Math.min(...[...document.querySelectorAll('#memory svg path[class^=area]')].map(one => one.getBBox().y))")
        self.assertAlmostEqual(top, at(self.ticks("memory", 1), explained["max_live_bytes"]), delta=0.1)
        self.section("traffic")
        bars = self.browser.run("return [...document.querySelectorAll('#traffic svg rect')].map(one => [+one.getAttribute('x'), +one.getAttribute('width')])")
        embed = explained["traffic"]["by_unit"][0]
        sent = [embed["all_gather"]["bytes"], embed["reduce_scatter"]["bytes"]]
        ticks = self.ticks("traffic", 0)
        self.assertAlmostEqual(bars[0][0] + bars[0][1], at(ticks, sent[0]), delta=0.1)
        self.assertAlmostEqual(bars[1][0], at(ticks, sent[0]), delta=0.1)
        self.assertAlmostEqual(bars[1][0] + bars[1][1], at(ticks, sum(sent)), delta=0.1)
        self.section("kernels")
        across, up = ([[math.log10(value), place] for value, place in self.ticks("kernels", axis)] for axis in (0, 1))
        kernels = [one for one in data["plans"][0]["kernels"] if one["flops"] and one["bytes"] and one["seconds"]]
        dots = self.browser.run("return [...document.querySelectorAll('#kernels svg circle:not(.followed)')].map(one => [+one.getAttribute('cx'), +one.getAttribute('cy')])")
        self.assertEqual(len(dots), len(kernels))
        for (x, y), one in zip(dots, kernels):
            self.assertAlmostEqual(x, at(across, math.log10(one["flops"] / one["bytes"])), delta=0.1)
            self.assertAlmostEqual(y, at(up, math.log10(one["flops"] / one["seconds"])), delta=0.1)
        self.section("scaling")
        rows = data["plans"][0]["scaling"]["rows"]
        dots = self.browser.run("return [...document.querySelector('#scaling svg').querySelectorAll('circle')].map(one => +one.getAttribute('cy'))")
        for y, row in zip(dots, rows, strict=True):
            self.assertAlmostEqual(y, at(self.ticks("scaling", 1), row["tokens_per_s_per_rank"]), delta=0.1)

    # --- how sure a time is ---

    def test_a_measured_machine_has_an_interval_and_assumptions(self):
        plan, machine = self.plan("gpt2", "full_shard"), self.shared / "machine.yaml"
        machine.write_text(MEASURED_MACHINE)
        path, _ = self.report(plan, "--world-size=2", f"--target={machine}", name="measured.html")
        self.show(path)
        explained = self.explain(plan, 2, f"--target={machine}")
        step = explained["step"]
        between = f"{short_seconds(step['seconds_low'])} and {short_seconds(step['seconds_high'])}"
        card = self.browser.text("#summary .card:nth-child(2)")
        self.assertIn(f"between {between}", card)
        rows = dict(self.rows("summary", "the step"))
        self.assertEqual(rows["between"], between)
        self.assertEqual(rows["launching of kernels"], short_seconds(step["launch_seconds"]))
        self.section("time")
        launches, waits = self.browser.run("""
            const chart = document.querySelector('#time [data-plan]').chart, sums = [0, 0];
            chart.plan.programs.forEach((program, k) => {
              chart.program = k;
              chart.load();
              for (const item of (chart.lanes.find(lane => lane.name === 'compute') || {items: []}).items)
                if (item.launch || item.wait) sums[item.launch ? 0 : 1] += program.runs * (item.end - item.begin);
            });
            return sums""")
        self.assertGreater(launches, 0)
        self.assertAlmostEqual(launches / 1e9, step["launch_seconds"], delta=1e-6)
        self.assertAlmostEqual(waits / 1e9, step["exposed_seconds"], delta=1e-6)
        self.assertTrue(explained["assumptions"])
        for assumption in explained["assumptions"]:
            self.assertIn(assumption, card)
        path, _ = self.report(plan, "--world-size=2", name="nominal.html")
        self.show(path)
        self.assertNotIn("between", self.browser.text("#summary .card:nth-child(2)"))

    # --- plans side by side ---

    def test_compared(self):
        plans = [self.plan("gpt2", "full_shard"), self.plan("gpt2", "no_shard")]
        path, data = self.report(*plans, "--compare", "--world-size=8", "--target=h100-ib", name="compare.html")
        self.show(path)
        cells = self.browser.run("return [...document.querySelectorAll('#compare tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        rows = {row[0]: row[1:] for row in cells}
        explained = [self.explain(plan, 8, "--target=h100-ib") for plan in plans]
        self.assertEqual(rows[""], [plan.name for plan in plans])
        self.assertEqual(rows["time of a step"], [short_seconds(one["step"]["seconds"]) for one in explained])
        self.assertEqual(rows["arena"], [short_bytes(one["arena_bytes"]) for one in explained])
        self.assertEqual(rows["sent by a rank in a step"], [short_bytes(one["traffic"]["total_bytes"]) for one in explained])
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling"):
            self.section(name)
            self.assertEqual(self.browser.run("return document.querySelectorAll('#' + arguments[0] + ' [data-plan]').length", name), 2)
        # Both charts of memory have the same scale.
        scales = self.browser.run("return [...document.querySelectorAll('#memory [data-plan]')].map(one => one.chart.y.domain()[1])")
        self.assertEqual(scales[0], scales[1])


class Dark(Pages):
    dark = True

    def test_dark_and_light(self):
        path, _ = self.report(self.plan("gpt2", "full_shard"))
        self.show(path)
        background = "return getComputedStyle(document.body).backgroundColor"
        system = self.browser.run(background)
        self.browser.click("#theme")
        light = self.browser.run(background)
        self.browser.click("#theme")
        dark = self.browser.run(background)
        self.assertEqual(light, "rgb(255, 255, 255)")
        self.assertEqual(system, dark)
        self.assertNotEqual(dark, light)


if __name__ == "__main__":
    unittest.main()
