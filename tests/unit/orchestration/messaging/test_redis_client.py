"""Redis clients by URL."""

import pytest
from redis.sentinel import SentinelConnectionPool

from orchestration.messaging import redis_client


def test_url_of_a_server_names_no_master():
    assert redis_client.master("redis://example.org/1") is None
    pool = redis_client.client("redis://example.org/1").connection_pool
    assert pool.connection_kwargs["host"] == "example.org"


def test_url_of_sentinels_names_a_master():
    url = "sentinels://app:p%40ss@a.example:5000,b.example,[::1]:7/main/3?password=own"
    place = redis_client.master(url)
    assert place.sentinels == [("a.example", 5000), ("b.example", 26379), ("::1", 7)]
    assert place.name == "main"
    assert place.access == {"db": 3, "ssl": True, "username": "app", "password": "p@ss"}
    assert place.own == {"password": "own", "ssl": True}
    assert place.for_rq()["MASTER_NAME"] == "main"


def test_options_of_tls_hold_for_the_master_as_well():
    place = redis_client.master("sentinels://a.example/main?password=own&ssl_ca_certs=/ca.pem")
    assert place.access == {"db": 0, "ssl": True, "ssl_ca_certs": "/ca.pem"}
    assert place.own == {"password": "own", "ssl": True, "ssl_ca_certs": "/ca.pem"}


@pytest.mark.parametrize("make", [redis_client.client, redis_client.async_client])
def test_client_asks_each_sentinel_with_patience(make):
    pool = make("sentinel://a.example,b.example/main", socket_timeout=7).connection_pool
    assert pool.service_name == "main"
    asked = [peer.connection_pool.connection_kwargs for peer in pool.sentinel_manager.sentinels]
    assert [kw["host"] for kw in asked] == ["a.example", "b.example"]
    assert all(kw["socket_timeout"] < pool.connection_kwargs["socket_timeout"] for kw in asked)


@pytest.mark.parametrize("url", ["sentinel://", "sentinel://a.example", "sentinel://a/main/x"])
def test_malformed_url_is_refused(url):
    with pytest.raises(ValueError, match="sentinel://host:port"):
        redis_client.master(url)


def test_master_is_asked_for_by_a_pool_of_sentinels():
    assert isinstance(
        redis_client.client("sentinel://a/main").connection_pool, SentinelConnectionPool
    )
