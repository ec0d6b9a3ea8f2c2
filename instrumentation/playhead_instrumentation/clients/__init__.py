"""The SDKs: where a logical call begins and returns. One file per SDK; the funnel is shared."""
