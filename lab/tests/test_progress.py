import io

from rich.console import Console

from thalweg_lab.progress import told_progress


def test_without_a_terminal_each_step_has_a_line() -> None:
    text, now = io.StringIO(), iter([0.0, *[1.0] * 2, *[61.0] * 9])
    with told_progress(Console(file=text), clock=lambda: next(now)) as tell:
        tell("filters", 0, 100, "costly")
        tell("filters", 50, 100, "costly")
        tell("filters", 100, 100, "")
    assert text.getvalue().splitlines()[0] == "0:01 filters costly: 0 of 100"
    assert text.getvalue().splitlines()[-1] == "1:01 filters: 100 of 100"


def test_steps_that_follow_quickly_have_no_lines_of_their_own() -> None:
    text = io.StringIO()
    with told_progress(Console(file=text), clock=lambda: 0.0) as tell:
        for done in range(11):
            tell("filters", done, 10, "costly")
    assert text.getvalue().splitlines() == ["0:00 filters costly: 0 of 10", "0:00 filters costly: 10 of 10"]


def test_a_terminal_has_bars() -> None:
    text = io.StringIO()
    with told_progress(Console(file=text, force_terminal=True, width=80)) as tell:
        tell("filters", 1, 2, "costly")
    assert "filters costly" in text.getvalue()
