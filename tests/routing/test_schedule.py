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
