"""The settings that `tw.join` needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import thalweg as tw
from thalweg.spark.checkpoint_files import BY_FILE_SYSTEM, SETTING
from thalweg.spark.joins.plan import CHANGELOG, PROVIDER, ROCKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_is_configured_once(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.unset(SETTING)  # the session of the tests has chosen
    assert tw.configure(own) == {PROVIDER: ROCKS, CHANGELOG: "true", SETTING: BY_FILE_SYSTEM}
    assert tw.configure(own) == {}
    rate = own.readStream.format("rate").load()
    tw.join({"a": rate, "b": rate}, "a.value = b.value", "1 minute", "timestamp")
    assert spark.conf.get(PROVIDER, None) != ROCKS


def test_what_the_user_has_chosen_stays(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set(SETTING, "chosen")
    assert tw.configure(own) == {PROVIDER: ROCKS, CHANGELOG: "true"}
    assert own.conf.get(SETTING) == "chosen"
