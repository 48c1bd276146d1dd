# SPDX-License-Identifier: MIT
"""A line chart as SVG, by hand: both axes logarithmic, one colour per line, names at the lines' ends."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 150, 40, 50
COLOURS = ("#3b6ea5", "#c2703d", "#4d8f58", "#8a5a9e", "#7a7a7a", "#b3434b")


def ticks(low, high):
    """1, 2, 5, 10, ... that cover the range."""
    found, step = [], 10 ** math.floor(math.log10(low))
    while not found or found[-1] < high:
        for digit in (1, 2, 5):
            value = digit * step
            if value * 2.5 > low and (not found or found[-1] < high):
                found.append(value)
        step *= 10
    return found


def lines(title, x_name, y_name, series):
    """series: {name: {x: y}}, all positive."""
    xs = sorted({x for points in series.values() for x in points})
    values = [y for points in series.values() for y in points.values()]
    grid = ticks(min(values), max(values))

    def px(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])

    def py(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(y / grid[0]) / math.log(grid[-1] / grid[0])

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12" fill="#333"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{title}</text>']
    for y in grid:
        out.append(f'<path d="M{LEFT} {py(y):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{py(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in xs:
        out.append(f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{x_name}</text>'
               f'<text transform="translate(18 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_name}</text>')
    for (name, points), colour in zip(series.items(), COLOURS):
        path = "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in sorted(points.items()))
        last = max(points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{px(last) + 8:.1f}" y="{py(points[last]) + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"
