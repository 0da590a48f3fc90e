// The connection of a page of a plugin to the console that frames it: `<script src="bridge.js"></script>` before its own scripts.
// It speaks JSON-RPC 2.0 over postMessage, as MCP Apps (2026-01-26) do, with the method `svc/request` for requests to the server.
;(() => {
  'use strict'
  const waiting = new Map()
  const listeners = new Set()
  let last = 0
  let context = {}

  const send = message => parent.postMessage({ jsonrpc: '2.0', ...message }, '*')

  const call = (method, params) =>
    new Promise((resolve, reject) => {
      const id = ++last
      waiting.set(id, { resolve, reject })
      send({ id, method, params })
    })

  /** Theme, language and colours of the console. */
  function apply(next) {
    context = { ...context, ...next }
    const { theme, locale, styles } = context
    const root = document.documentElement
    if (theme) root.dataset.theme = theme
    if (theme) root.style.colorScheme = theme
    if (locale) root.lang = locale
    for (const [name, value] of Object.entries(styles?.variables ?? {})) root.style.setProperty(name, value)
    for (const listener of listeners) listener(context)
  }

  function answer({ id, result, error }) {
    const call = waiting.get(id)
    waiting.delete(id)
    if (error)
      call?.reject(Object.assign(new Error(error.message), { code: error.data?.code ?? error.code, hint: error.data?.hint }))
    else call?.resolve(result)
  }

  addEventListener('message', ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== '2.0') return
    if (data.method === undefined) answer(data)
    else if (data.method === 'ping') send({ id: data.id, result: {} })
    else if (data.method === 'ui/notifications/host-context-changed') apply(data.params)
  })

  /** Throws an Error with `code`, `status` and `hint` for an answer that is an error. */
  async function request(method, path, { query, body } = {}) {
    const { status, body: answered } = await call('svc/request', { method, path, query, body })
    if (status < 400) return answered
    const { error = `The server answered ${status}`, error_code: code, details } = Object(answered)
    throw Object.assign(new Error(error), { status, code, hint: details?.hint })
  }

  const ready = call('ui/initialize', {
    protocolVersion: '2026-01-26',
    appInfo: { name: document.title || 'page', version: '1' },
    appCapabilities: {},
  }).then(({ hostContext }) => {
    apply(hostContext)
    send({ method: 'ui/notifications/initialized' })
    return hostContext
  })

  window.svc = Object.freeze({
    /** Resolves when the console has answered. */
    ready,
    /** `svc.request('POST', '/notes', { body: { text: 'x' } })` sends one of the requests that the manifest lists. */
    request,
    /** `{ theme: 'dark', locale: 'en-GB', … }` */
    context: () => context,
    /** The console loads the page anew after each of its dialogs. `value` is kept meanwhile: plain data, in memory, until the page is left. */
    keep: value => send({ method: 'svc/keep', params: { value } }),
    /** What was kept, or null. Ask after `ready`. */
    kept: () => context.kept ?? null,
    /** Calls `listener` now and after each change of the context. Returns a function that ends it. */
    onContext(listener) {
      listeners.add(listener)
      listener(context)
      return () => listeners.delete(listener)
    },
  })
})()
