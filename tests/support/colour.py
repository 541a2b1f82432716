"""How colours look to people: contrast after WCAG 2, colour blindness after Machado et al. (2009), CIEDE2000."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

Triple = tuple[float, float, float]
Matrix = tuple[Triple, Triple, Triple]

# For severity 1.0, on linear RGB.
VISIONS: dict[str, Matrix] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_TO_XYZ: Matrix = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE: Triple = (0.95047, 1.0, 1.08883)


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2, between 1 and 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def difference(one: str, other: str, vision: str = "normal") -> float:
    """CIEDE2000 of two colours as people with this vision see them."""
    return _ciede2000(_lab(one, VISIONS[vision]), _lab(other, VISIONS[vision]))


def _linear(colour: str) -> Triple:
    def part(at: int) -> float:
        value = int(colour[at : at + 2], 16) / 255
        return float(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)

    return part(1), part(3), part(5)


def _luminance(colour: str) -> float:
    return _times(_TO_XYZ, _linear(colour))[1]


def _times(matrix: Matrix, vector: Triple) -> Triple:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return first, second, third


def _lab(colour: str, vision: Matrix) -> Triple:
    red, green, blue = (min(1.0, max(0.0, part)) for part in _times(vision, _linear(colour)))
    scaled = [part / white for part, white in zip(_times(_TO_XYZ, (red, green, blue)), _WHITE, strict=True)]
    x, y, z = (part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _ciede2000(one: Triple, other: Triple) -> float:
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (hypot(a1, b1) + hypot(a2, b2)) / 2
    g = 0.5 * (1 - sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    c1, c2 = hypot(a1 * (1 + g), b1), hypot(a2 * (1 + g), b2)
    h1, h2 = (degrees(atan2(b, a * (1 + g))) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    d_h = 2 * sqrt(c1 * c2) * sin(radians(turn) / 2)
    mean_l, mean = (l1 + l2) / 2, (c1 + c2) / 2
    h = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = 1 - 0.17 * _cos(h - 30) + 0.24 * _cos(2 * h) + 0.32 * _cos(3 * h + 6) - 0.20 * _cos(4 * h - 63)
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean, 1 + 0.015 * mean * t
    r_c = 2 * sqrt(mean**7 / (mean**7 + 25**7))
    r_t = -sin(radians(60 * exp(-(((h - 275) / 25) ** 2)))) * r_c
    lightness, chroma, hue = (l2 - l1) / s_l, (c2 - c1) / s_c, d_h / s_h
    return sqrt(lightness**2 + chroma**2 + hue**2 + r_t * chroma * hue)


def _cos(angle: float) -> float:
    return cos(radians(angle))
