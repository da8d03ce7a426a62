"""diff.js: the diff of a review run, with its files and lines."""

from typing import Final

from tests.web.modules import Parts

PATCH: Final = """diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1,2 +1,3 @@ def f():
 same
+<b>added</b>
+++ counted
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
--- the end
"""


async def test_files_and_lines_are_counted(parts: Parts) -> None:
    got = await parts.run(
        """const { filesOf, figuresText } = await load("diff");
        return [filesOf(given).map(({ name, added, removed }) => [name, added, removed]), filesOf(""),
          figuresText({ files: 1, insertions: 2 })]""",
        PATCH,
    )

    assert got == [[["new.py", 2, 0], ["gone", 0, 1]], [], "1 file, +2 −0"]


async def test_each_file_can_be_opened(parts: Parts) -> None:
    got = await parts.run(
        """const { diffElement } = await load("diff");
        const shown = diffElement({ diff: given, figures: { files: 2, insertions: 2, deletions: 1,
          bytes: 9e6 } });
        document.body.append(shown); const [first] = shown.querySelectorAll("details");
        return [texts(".diff-file summary"), first.open, [...first.querySelectorAll(".added")].map((line) =>
          line.textContent), texts(".diff > p")]""",
        PATCH,
    )

    assert got == [
        ["new.py+2 −0", "gone+0 −1"],
        False,
        ["+<b>added</b>", "+++ counted"],
        ["Diff from git: 2 files, +2 −1", "The rest of the diff is in the folder of the run."],
    ]


async def test_a_diff_without_figures_counts_its_own_lines(parts: Parts) -> None:
    got = await parts.run(
        """const { diffElement } = await load("diff"); document.body.append(diffElement({ diff: given }));
        return texts(".diff > p")""",
        PATCH,
    )

    assert got == ["Diff from git: 2 files, +2 −1"]
