"""Draw docs/overview.svg, the picture of the README.

python tools/make_picture.py
"""

from pathlib import Path

WIDTH, HEIGHT = 900, 330
INK, PAPER, SOFT = "#1f2937", "#ffffff", "#e5e7eb"
COLOURS = {"yours": "#dbeafe", "ours": "#dcfce7", "chip": "#fef3c7"}


def box(x: int, y: int, w: int, h: int, colour: str, title: str, *lines: str) -> str:
    text = [f'<text x="{x + w / 2}" y="{y + 24}" class="title">{title}</text>']
    text += [f'<text x="{x + w / 2}" y="{y + 46 + 18 * i}">{line}</text>' for i, line in enumerate(lines)]
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{COLOURS[colour]}" stroke="{INK}"/>' + "".join(
        text
    )


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"/>'


def picture() -> str:
    parts = [
        box(20, 30, 200, 120, "yours", "app.py", "sources, models,", "pipelines, jobs,", "stages in typed Python"),
        box(20, 190, 200, 100, "yours", "network.tflite", "int8, as trained", "and exported"),
        box(
            290,
            30,
            230,
            120,
            "ours",
            "tables + compiled stages",
            "what the app declares,",
            "as read-only data;",
            "its stages, as C99",
        ),
        box(290, 190, 230, 100, "ours", "container", "layers, weights and", "a memory plan, ready to run"),
        box(590, 20, 290, 76, "ours", "the kernel, in typed Python", "one source: jobs, arena, layers"),
        box(590, 120, 290, 50, "chip", "checked: CPython, every bound"),
        box(590, 184, 290, 50, "chip", "native: a library, GIL released"),
        box(590, 248, 290, 50, "chip", "cortex-m: firmware, emulated or not"),
        arrow(220, 90, 288, 90),
        arrow(220, 240, 288, 240),
        arrow(520, 90, 588, 66),
        arrow(520, 240, 552, 240),
        f'<path d="M 552 145 L 552 273 M 552 145 L 586 145 M 552 209 L 586 209 M 552 273 L 586 273" fill="none" stroke="{INK}" stroke-width="1.5"/>',
        arrow(735, 96, 735, 118),
        '<text x="735" y="318" class="note">the same bytes in every tensor</text>',
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="14">',
            f"<style>text {{ text-anchor: middle; fill: {INK}; }} .title {{ font-weight: bold; }} .note {{ font-style: italic; }}</style>",
            f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "docs" / "overview.svg"
    target.write_text(picture())
