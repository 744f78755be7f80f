from thalweg.routing.schedule import FIRST_LOOK, LookSchedule


def test_a_first_change_of_classes_is_a_change_however_early_it_comes() -> None:
    with_classes, without = LookSchedule(window=4000), LookSchedule(window=4000)
    for schedule in (with_classes, without):
        schedule.count(FIRST_LOOK)
        schedule.looked(sample_size=FIRST_LOOK)
        schedule.count(50)
        schedule.look_again(has_classes=schedule is with_classes)
    assert (with_classes.changed, without.changed) == (FIRST_LOOK + 50, 0)


def test_what_follows_a_change_soon_is_the_same_change() -> None:
    schedule = LookSchedule(window=4000)
    schedule.count(FIRST_LOOK)
    schedule.look_again(has_classes=True)
    schedule.count(FIRST_LOOK)
    schedule.look_again(has_classes=True)
    assert schedule.changed == FIRST_LOOK
    schedule.count(2 * FIRST_LOOK)
    schedule.look_again()
    assert schedule.changed == 4 * FIRST_LOOK


def test_a_change_soon_after_the_first_look_does_not_make_it_undone() -> None:
    """While there was no look, profiling may take twenty times its share."""
    schedule = LookSchedule(window=4000)
    schedule.count(FIRST_LOOK)
    schedule.looked(sample_size=FIRST_LOOK)
    schedule.count(50)
    schedule.look_again()
    assert schedule.has_looked
    schedule.count(1)
    assert schedule.is_due
