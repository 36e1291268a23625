"""Counts calls in front of an OpenAI-compatible server, so that no system can spend more than another.

  python proxy.py UPSTREAM PORT ANSWERS.sqlite

GET /_count gives what was spent; POST /_reset {"cap": n} starts a new count. Past the cap every call is refused
with 402. A request of temperature 0 that was answered before is answered from the store, and counts all the same.
"""
import hashlib, json, sqlite3, sys
from aiohttp import web, ClientSession, ClientTimeout

UPSTREAM, PORT, STORE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
store = sqlite3.connect(STORE)
store.execute("create table if not exists answers (key text primary key, body blob)")
ZERO = dict(calls=0, prompt_tokens=0, completion_tokens=0, refused=0, stored=0)
state = dict(ZERO, cap=10**9)


async def forward(request):
    body = await request.read()
    if request.method != "POST":
        async with request.app["http"].get(UPSTREAM + request.path_qs) as answer:
            return web.Response(body=await answer.read(), status=answer.status, content_type="application/json")
    if state["calls"] >= state["cap"]:
        state["refused"] += 1
        return web.json_response({"error": {"message": "budget spent", "type": "budget", "code": 402}}, status=402)
    state["calls"] += 1
    key = hashlib.sha256(request.path_qs.encode() + b"\0" + body).hexdigest()
    keep = json.loads(body).get("temperature") == 0
    row = store.execute("select body from answers where key = ?", (key,)).fetchone() if keep else None
    if row:
        state["stored"] += 1
        answered, status = row[0], 200
    else:
        async with request.app["http"].post(UPSTREAM + request.path_qs, data=body, headers={"content-type": "application/json"}) as answer:
            answered, status = await answer.read(), answer.status
        if keep and status == 200:
            store.execute("insert or replace into answers values (?, ?)", (key, answered))
            store.commit()
    try:
        usage = json.loads(answered).get("usage", {})
        state["prompt_tokens"] += usage.get("prompt_tokens", 0)
        state["completion_tokens"] += usage.get("completion_tokens", 0)
    except ValueError:
        pass
    return web.Response(body=answered, status=status, content_type="application/json")


async def count(_):
    return web.json_response(state)


async def reset(request):
    state.update(ZERO, cap=(await request.json()).get("cap", 10**9))
    return web.json_response(state)


async def app():
    a = web.Application(client_max_size=2**26)
    a["http"] = ClientSession(timeout=ClientTimeout(total=900))
    a.add_routes([web.get("/_count", count), web.post("/_reset", reset), web.route("*", "/{path:.*}", forward)])
    return a

web.run_app(app(), host="127.0.0.1", port=PORT, print=None)
