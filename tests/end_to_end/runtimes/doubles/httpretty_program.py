"""httpretty in the place of sockets."""

import sys
import urllib.request

import httpretty

with httpretty.enabled(allow_net_connect=False):
    httpretty.register_uri(httpretty.GET, "http://double/one", body='{"one": 1}')
    print(urllib.request.urlopen("http://double/one").read())
    print(len(httpretty.latest_requests()))
sys.exit(3)
