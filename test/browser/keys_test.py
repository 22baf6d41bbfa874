"""The page of a report by keys alone: what they reach, what they read, and what they leave to the browser."""

import unittest

from reports import RunPages

ARROW_RIGHT, ARROW_LEFT, ARROW_DOWN, END, TAB = "\ue014", "\ue012", "\ue015", "\ue010", "\ue004"


class Keys(RunPages):
    def test_tab_reaches_what_can_be_used(self):
        self.page()
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling"):
            self.section(name)
        self.browser.run("window.scrollTo(0, 0); document.activeElement.blur()")
        reached = set()
        for _ in range(400):
            self.browser.press(TAB)
            where = self.browser.run("const one = document.activeElement, section = one.closest('section[id]'); return [one.tagName, section ? section.id : '']")
            reached.add(tuple(where))
            if where[1] == "scaling":
                break
        for place in (("A", ""), ("BUTTON", ""), ("svg", "memory"), ("SELECT", "memory"), ("svg", "time"), ("svg", "kernels"), ("SUMMARY", "traffic"),
                      ("svg", "traffic"), ("svg", "recomputation"), ("svg", "scaling")):
            self.assertIn(place, reached)

    def test_keys_read_marks(self):
        """Of charts with nothing to choose: each mark says by keys what the pointer reads of it."""
        self.page()
        for name in ("traffic", "recomputation", "scaling"):
            self.section(name)
            titles = self.browser.run("return [...document.querySelector(`#${arguments[0]} svg`).querySelectorAll('rect > title, circle > title')].map(one => one.textContent)", name)
            self.assertGreater(len(titles), 1)
            self.browser.run("document.querySelector(`#${arguments[0]} svg`).focus()", name)
            read = f"#{name} [role=status]"
            for keys, title in ((ARROW_DOWN, titles[0]), (ARROW_RIGHT, titles[1]), (END, titles[-1]), (ARROW_RIGHT, titles[-1]), (ARROW_LEFT, titles[-2])):
                self.browser.press(*keys)
                self.assertEqual(self.browser.text(read), title)
                self.assertEqual(self.browser.run("return [...document.querySelectorAll(`#${arguments[0]} .chosen`)].map(one => ['rect', 'circle'].includes(one.tagName))", name), [True])

    def test_keys_of_the_browser_stay_its_own(self):
        """Alt and left goes back, Ctrl and minus shrinks the page: no chart takes them, and all take the same keys alone."""
        self.page()
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling"):
            self.section(name)
        for name in ("run", "measured"):
            self.browser.run("document.getElementById(arguments[0]).scrollIntoView()", name)
            self.until("return document.querySelector('#' + arguments[0] + ' svg')", name)
        press = """const svg = document.querySelector(`#${arguments[0]} svg`), before = svg.outerHTML;
            const passed = svg.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], cancelable: true, bubbles: true, ...arguments[2]}));
            return [passed, svg.outerHTML === before]"""
        for name in ("memory", "time", "traffic", "kernels", "recomputation", "scaling", "run", "measured"):
            for key in ("ArrowLeft", "ArrowRight", "Home", "End", "+", "-", "0"):
                for held in ("ctrlKey", "altKey", "metaKey"):
                    self.assertEqual(self.browser.run(press, name, key, {held: True}), [True, True], (name, key, held))
            self.assertFalse(self.browser.run(press, name, "End", {})[0], name)
            self.assertFalse(self.browser.run(press, name, "Home", {"shiftKey": True})[0], name)

    def test_what_keys_choose_is_read_aloud(self):
        """By an element that stays and is announced when its text changes."""
        self.page()
        for name in ("memory", "time", "kernels"):
            self.section(name)
        self.browser.run("document.getElementById('run').scrollIntoView()")
        self.until("return document.querySelector('#run svg')")
        for name, place in (("memory", ".live-panel h4"), ("time", ".timeline-panel"), ("kernels", ".roofline-panel"), ("run", ".spoken")):
            selector = f"#{name} {place}"
            self.assertEqual(self.browser.run("const one = window.read = document.querySelector(arguments[0]); return [one.getAttribute('role'), one.getAttribute('aria-live')]", selector),
                             ["status", "polite"])
            self.browser.run("document.querySelector(`#${arguments[0]} svg`).focus()", name)
            texts = []
            for key in (END, ARROW_LEFT):
                self.browser.press(key)
                self.pictured()
                same, text = self.browser.run("return [document.querySelector(arguments[0]) === window.read, window.read.textContent]", selector)
                self.assertTrue(same, selector)
                texts.append(text)
            self.assertNotEqual(texts[0], texts[1], selector)
            self.assertTrue(all(texts), selector)


if __name__ == "__main__":
    unittest.main()
