"""What an unknown name is answered with; that it is, at each place, is in the tests of that place."""

from isoglot.core.errors import nearest


def test_without_a_near_name_the_known_ones_are_listed():
    assert nearest("xyz", ["one", "two"]) == "known: one, two"
    assert nearest("xyz", map(str, range(20)), most=2) == "known: 0, 1, …"
    assert nearest("xyz", ["one"], otherwise="look it up") == "look it up"
