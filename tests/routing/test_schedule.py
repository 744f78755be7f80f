from thalweg.routing.schedule import FIRST_LOOK, LookSchedule


def test_a_first_change_is_a_change_however_early_it_comes() -> None:
    schedule = LookSchedule(window=4000)
    schedule.count(FIRST_LOOK)
    schedule.looked(sample_size=FIRST_LOOK)
    schedule.count(50)
    schedule.look_again()
    assert schedule.changed == FIRST_LOOK + 50


def test_what_follows_a_change_soon_is_the_same_change() -> None:
    schedule = LookSchedule(window=4000)
    schedule.count(FIRST_LOOK)
    schedule.look_again()
    schedule.count(FIRST_LOOK)
    schedule.look_again()
    assert schedule.changed == FIRST_LOOK
    schedule.count(2 * FIRST_LOOK)
    schedule.look_again()
    assert schedule.changed == 4 * FIRST_LOOK
