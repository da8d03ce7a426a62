from csp.core.screen import BLANK, PLAIN, Row, Run, Screen, Style


def test_a_row_has_the_text_of_its_runs_without_blanks_at_the_end() -> None:
    assert Row((Run("❯ "), Run("draft", Style(bold=True)), Run("  "))).text == "❯ draft"
    assert BLANK.text == ""


def test_a_space_that_does_not_break_is_no_blank() -> None:
    assert Row((Run("❯\xa0"),)).text == "❯\xa0"


def test_rows_are_equal_by_what_they_show() -> None:
    assert Row((Run("a"),)) == Row((Run("a"),))
    assert Row((Run("a"),)) != Row((Run("a", Style(faint=True)),))


def test_a_screen_has_its_rows_as_lines() -> None:
    screen = Screen(rows=(Row((Run("a"),)), BLANK, Row((Run("b"),)), BLANK), cols=10)

    assert screen.text == "a\n\nb"


def test_the_style_of_a_character() -> None:
    row = Row((Run("ab", Style(bold=True)), Run("c", Style(faint=True))))

    assert [row.style_at(place) for place in range(4)] == [
        Style(bold=True),
        Style(bold=True),
        Style(faint=True),
        PLAIN,
    ]
