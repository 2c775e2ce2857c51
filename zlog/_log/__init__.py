"""What a log can do, by what it is for; `zlog.Log` and `zlog.aio.Log` put it together."""
