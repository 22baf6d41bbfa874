"""Colours that stand beside each other are told apart with any kind of colour vision, on light and on dark."""

import itertools
import re
import unittest

from harness import SOURCE

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009:
# severity 1, of linear RGB.
VISION = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# In CIELAB a difference of 2.3 is just noticed (M. Mahy et al., 1994).
TOLD_APART = 6 * 2.3


def linear(color):
    values = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def lab(rgb):
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1, 1.089)
    xyz = [sum(a * min(1, max(0, b)) for a, b in zip(row, rgb)) / w for row, w in zip(to_xyz, white)]
    x, y, z = (value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116 for value in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(a, b, vision):
    seen = [lab([sum(m * c for m, c in zip(row, linear(color))) for row in VISION[vision]]) for color in (a, b)]
    return sum((p - q) ** 2 for p, q in zip(*seen)) ** 0.5


class Colours(unittest.TestCase):
    def test_told_apart(self):
        style = (SOURCE / "tools/ftc/report/page/style.css").read_text()
        light = dict(re.findall(r"--(c\d): (#[0-9a-f]{6})", style.split("@media")[0]))
        dark = {**light, **dict(re.findall(r"--(c\d): (#[0-9a-f]{6})", style.split("@media")[1].split("}")[0]))}
        self.assertEqual(len(light), 8)
        for name, colors in (("light", light), ("dark", dark)):
            for vision in VISION:
                for a, b in itertools.combinations(sorted(colors), 2):
                    with self.subTest(mode=name, vision=vision, pair=(a, b)):
                        self.assertGreater(difference(colors[a], colors[b], vision), TOLD_APART)

    def test_text_is_read(self):
        """WCAG's contrast of text, 4.5 to 1 and more."""
        style = (SOURCE / "tools/ftc/report/page/style.css").read_text()
        for part in (style.split("@media")[0], style.split("@media")[1]):
            colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part))
            for text in ("text", "quiet", "accent", "good", "bad", "mark"):
                for back in ("page", "card", "chart"):
                    with self.subTest(text=text, back=back):
                        light = [sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colors[one]))) + 0.05 for one in (text, back)]
                        self.assertGreater(max(light) / min(light), 4.5)


if __name__ == "__main__":
    unittest.main()
