import ipaddress
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thalweg.tables import addresses as addresses_module
from thalweg.tables.addresses import parse_addresses
from thalweg.tables.keys import KeyTableError
from thalweg.tables.prefixes import Prefixes

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Kind: TypeAlias = Literal["ip", "string"]

# Few distinct bits at either end, so that prefixes nest, touch and reach the first and the last address.
IPV4_NUMBERS = st.integers(0, 2**32 - 1) | st.builds(
    lambda high, low: high << 29 | low, st.integers(0, 7), st.sampled_from([0, 1, 2**29 - 1, 2**16])
)
IPV6_NUMBERS = st.integers(0, 2**128 - 1) | st.builds(
    lambda high, low: high << 125 | low, st.integers(0, 7), st.sampled_from([0, 1, 2**125 - 1, 2**64, 2**64 - 1])
)
IPV4, IPV6 = IPV4_NUMBERS.map(IPv4Address), IPV6_NUMBERS.map(IPv6Address)
NETWORKS: st.SearchStrategy[Network] = st.builds(
    lambda address, length: ipaddress.ip_network((address, length), strict=False), IPV4, st.integers(0, 32)
) | st.builds(lambda address, length: ipaddress.ip_network((address, length), strict=False), IPV6, st.integers(0, 128))


def covers(networks: list[Network], address: Address | None) -> bool:
    return any(address is not None and address in network for network in networks)


def sliced(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array([*values[:1], *values, *values[-1:]], kind).slice(len(values[:1]), len(values))


def check(table: Prefixes, column: pa.Array, answer: list[bool]) -> None:
    matches = table.matches(column)
    assert matches.type == pa.bool_()
    nulls = column.is_null().to_pylist()
    assert matches.to_pylist() == [None if null else found for null, found in zip(nulls, answer, strict=True)]


@given(st.lists(NETWORKS, unique=True, max_size=30), st.data())
def test_a_network_matches_where_ipaddress_says_so(networks: list[Network], data: st.DataObject) -> None:
    edges = [address for network in networks for address in (network[0], network[-1])]
    address = IPV4 | IPV6 | st.none() | (st.sampled_from(edges) if edges else st.none())
    addresses = data.draw(st.lists(address, max_size=30))
    answer = [covers(networks, address) for address in addresses]
    texts = [None if address is None else str(address) for address in addresses]
    table = Prefixes(sliced([str(network) for network in networks], pa.string()))
    assert len(table) == len(networks)
    check(table, sliced(texts, pa.string()), answer)
    check(table, pa.array(texts, pa.string()).dictionary_encode(), answer)
    check(table, sliced(texts, pa.string_view()), answer)
    check(table, sliced([None if it is None else it.packed for it in addresses], pa.binary()), answer)


@given(st.lists(NETWORKS.filter(lambda network: network.version == 4), unique=True), st.lists(st.none() | IPV4))
def test_integers_and_four_bytes_are_ipv4(networks: list[Network], addresses: list[IPv4Address | None]) -> None:
    table = Prefixes(pa.array(map(str, networks), pa.string()))
    answer = [covers(networks, address) for address in addresses]
    numbers = [None if address is None else int(address) for address in addresses]
    check(table, sliced(numbers, pa.int64()), answer)
    check(table, sliced(numbers, pa.uint32()), answer)
    packed = [None if address is None else address.packed for address in addresses]
    check(table, sliced(packed, pa.binary(4)), answer)


def test_sixteen_bytes_of_one_width_are_ipv6() -> None:
    table = Prefixes(pa.array(["2001:db8::/32", "0.0.0.0/0"]))
    column = pa.array([IPv6Address("2001:db8::1").packed, None, IPv6Address("::1").packed], pa.binary(16))
    check(table, column, [True, False, False])


@given(st.lists(st.text("0123456789./:a", max_size=16) | IPV4.map(str) | IPV6.map(str), min_size=1, max_size=5))
@example(["1.2.3.4", "01.2.3.4"])
@example(["1.2.3", "4.5.6.7.8"])
@example([".1.2.3", "1.2.3.4"])
@example(["1.2.3.", "41.2.3.4"])
@example(["1.2.3.4.5.6.7", ""])
@example(["", "1.2.3.4.5.6.7"])
@example(["1..2.3"])
@example(["1.2.3.256"])
@example(["1.2.3.1000"])
@example(["1.2.3.0004"])
@example([""])
@example(["fe80::1%eth0"])
@example(["::ffff:10.0.0.1"])
@example(["::00001"])
def test_a_text_is_an_address_when_ipaddress_says_so(texts: list[str]) -> None:
    def parse(text: str) -> Address | None:
        try:
            return ipaddress.ip_address(text)
        except ValueError:
            return None

    addresses = [parse(text) for text in texts]
    if None in addresses:
        with pytest.raises(ValueError, match="is no IP address") as caught:
            parse_addresses(pa.array(texts))
        assert str(caught.value).startswith(repr(texts[addresses.index(None)]))
    else:
        parsed = parse_addresses(pa.array(texts))
        for address, is_ipv6, high, low in zip(addresses, *map(list, parsed), strict=True):
            assert address is not None
            assert is_ipv6 == (address.version == 6)
            assert int(high) << 64 | int(low) == int(address) << (0 if is_ipv6 else 96)


def test_pieces_are_parsed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{i}.{i * 7 % 256}.{i * 31 % 256}.{i * 101 % 256}" for i in range(256)]
    whole = parse_addresses(pa.array(texts)).high.tolist()
    assert whole == [int(IPv4Address(text)) << 32 for text in texts]
    for piece in (1, 7, 255, 256):
        monkeypatch.setattr(addresses_module, "PIECE", piece)
        assert parse_addresses(pa.array(texts)).high.tolist() == whole


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["10.0.0.1", None, "ten", "::x"]), "'ten' is no IP address: write an address such as"),
        (pa.array(["10.0.0.1", "::x", "ten"]), "'::x' is no IP address"),
        (pa.array([1, -5, 2**32]), "-5 is no IPv4 number: such numbers are 0 to 4294967295"),
        (pa.array([b"1234", b"12345"]), "b'12345' is no IP address: an address has 4 or 16 bytes"),
    ],
)
def test_values_that_are_no_address_are_named(column: pa.Array, message: str) -> None:
    table = Prefixes(pa.array(["10.0.0.0/8"]))
    with pytest.raises(ValueError, match=message):
        table.matches(column)


@pytest.mark.parametrize("letters", ["ab", "aé\0日"])
@given(data=st.data())
def test_a_string_matches_where_startswith_says_so(letters: str, data: st.DataObject) -> None:
    texts = st.text(letters, max_size=12)
    strings, rows = data.draw(st.lists(texts, unique=True)), data.draw(st.lists(st.none() | texts))
    answer = [row is not None and row.startswith(tuple(strings)) for row in rows]
    table = Prefixes(sliced(strings, pa.string()), kind="string")
    check(table, sliced(rows, pa.string()), answer)
    check(table, sliced(rows, pa.string_view()), answer)
    check(table, pa.array(rows, pa.large_string()).dictionary_encode(), answer)


def test_prefixes_may_be_written_in_several_ways() -> None:
    table = Prefixes(pa.table({"net": ["2001:DB8::/32", "192.0.2.1", "10.0.0.0/08"]}))
    check(table, pa.array(["2001:db8::1", "192.0.2.1", "192.0.2.2", "10.0.0.2"]), [True, True, False, True])


@pytest.mark.parametrize("kind", ["ip", "string"])
def test_no_prefixes_and_no_rows(kind: Kind) -> None:
    empty = Prefixes(pa.array([], pa.string()), kind)
    assert len(empty) == 0
    check(empty, pa.array(["10.0.0.1", None, "::1"]), [False, False, False])
    for table in (empty, Prefixes(pa.array(["10.0.0.0/8"]), kind)):
        check(table, pa.array([], pa.string()), [])
        check(table, pa.array(["10.0.0.1"]).slice(1), [])
        check(table, pa.nulls(2), [False, False])
        check(table, pa.array([None], pa.string()), [False])


def test_chunks_are_one_column() -> None:
    table = Prefixes(pa.chunked_array([["10.0.0.0/8"], [], ["::/0"]], pa.string()))
    check(table, pa.chunked_array([["10.0.0.1"], [None, "::1"]]), [True, False, True])


@pytest.mark.parametrize(
    ("prefixes", "kind", "message"),
    [
        (["10.0.0.0/8", "10.0.0.1/8", "x"], "ip", r"2 of the 3 .*'10\.0\.0\.1/8': write '10\.0\.0\.0/8'"),
        (["2001:db8::1/32"], "ip", "write '2001:db8::/32'"),
        (["10.0.0.0/255.0.0.0"], "ip", r"write '10\.0\.0\.0/8'"),
        (["10.0.0.0/33"], "ip", "write a network such as"),
        (["::/129"], "ip", "write a network such as"),
        (["::/99999999999999999999"], "ip", "write a network such as"),
        (["10.0.0.0/"], "ip", "write a network such as"),
        (["10.0/8"], "ip", "write a network such as"),
        (["10.0.0.0/8", None], "ip", r"1 of the 2 .* NULL in column 'prefix'.*dropna"),
        (["10.0.0.0/8", "10.0.0.0/8"], "ip", "1 of the 2 .*dropDuplicates"),
        (["::1/128", "0::1"], "ip", "1 of the 2 .*'::1/128' and '0::1': keep one"),
        (["a", None, None], "string", "2 of the 3 .* NULL"),
        (["a", "a"], "string", "1 of the 2 .*dropDuplicates"),
    ],
)
def test_prefixes_that_cannot_be_matched(prefixes: list[str | None], kind: Kind, message: str) -> None:
    with pytest.raises(KeyTableError, match=message):
        Prefixes(pa.array(prefixes), kind)


@given(st.text("0123456789./:af", max_size=12) | NETWORKS.map(str))
@settings(max_examples=300)
def test_a_prefix_is_malformed_when_ipaddress_says_so(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        with pytest.raises(KeyTableError, match="malformed"):
            Prefixes(pa.array([text]))
    else:
        Prefixes(pa.array([text]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Prefixes(pa.table({"a": ["x"], "b": ["y"]})), KeyTableError, "one column, not 2"),
        (lambda: Prefixes(pa.array([1])), KeyTableError, r"'prefix' is int64: write col\('prefix'\)\.cast\('string'\)"),
        (lambda: Prefixes(pa.array(["a"]), kind="regex"), ValueError, "'ip' or 'string', not 'regex'"),  # type: ignore[arg-type]
        (lambda: Prefixes(pa.array(["::"])).matches(pa.array([1.5])), TypeError, "type double has no ip prefixes"),
        (lambda: Prefixes(pa.array(["a"]), "string").matches(pa.array([b"a"])), TypeError, "binary has no string"),
    ],
)
def test_other_mistakes_say_what_to_write(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
